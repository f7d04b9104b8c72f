! The Fortran module: a file of integrals written and read back, blocking and not, and errors with their text.
program test_fortran
  use, intrinsic :: iso_c_binding
  use outcore_eaf
  implicit none
  integer, parameter :: n = 2000
  real(c_double), target, asynchronous :: values(n, 2), other(n, 2)
  integer(c_int) :: file, at_end, done
  integer(c_int64_t) :: request, moved, bytes, requests(2)
  integer(c_int) :: which
  integer :: i

  values = reshape([(real(i, c_double), i = 1, 2 * n)], [n, 2])
  other = 0
  bytes = 8 * size(values)

  call expect(oc_eaf_open('ints', file) == oc_ok, 'open')
  call expect(oc_eaf_write(file, 800_c_int64_t, values, bytes) == oc_ok, 'write')
  call expect(oc_eaf_read(file, 800_c_int64_t, other, bytes, moved) == oc_ok, 'read')
  call expect(moved == bytes .and. all(other == values), 'the same values')

  other = 0
  call expect(oc_eaf_write_async(file, 0_c_int64_t, values, bytes, request) == oc_ok, 'write_async')
  call expect(oc_wait(request) == oc_ok, 'wait for the write')
  call expect(oc_eaf_read_async(file, 0_c_int64_t, other, bytes, request) == oc_ok, 'read_async')
  call expect(oc_test(request, done) == oc_ok, 'probe')
  call expect(oc_wait(request, moved) == oc_ok, 'wait for the read')
  call expect(moved == bytes .and. all(other == values), 'the same values again')

  other = 0
  do i = 1, 2
    call expect(oc_eaf_read_async(file, (i - 1) * bytes / 2, other(:, i), bytes / 2, requests(i)) == oc_ok, 'column')
  end do
  call expect(oc_wait_any(requests, which) == oc_ok .and. which >= 1 .and. which <= 2, 'wait for any')
  call expect(oc_wait_all(2, requests) == oc_ok, 'wait for all')
  call expect(all(other == values), 'the same values in two requests')

  call expect(oc_eaf_truncate(file, 100_c_int64_t) == oc_ok, 'truncate')
  call expect(oc_eaf_length(file, moved) == oc_ok .and. moved == 100, 'length')
  call expect(oc_eaf_eof(file, 100_c_int64_t, at_end) == oc_ok .and. at_end == 1, 'eof')
  call expect(oc_eaf_read(file, 0_c_int64_t, other, bytes) == oc_end_of_file, 'end of file')
  call expect(index(oc_errmsg(oc_end_of_file), 'after 100 bytes') > 0, 'text of the end of file')
  call expect(oc_eaf_delete(file) == oc_ok, 'delete')
  call expect(oc_eaf_close(file) /= oc_ok, 'a closed handle is refused')
  call expect(oc_eaf_open('ints', file, scratch='/nonexistent') /= oc_ok, 'a missing directory is refused')

contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine

end program test_fortran
