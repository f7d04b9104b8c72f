! Exclusive and shared files by their classic names from Fortran, with INTEGER of the size that the library has.
! The order in which operands are evaluated is open, so calls that change something stand alone.
program test_names
  implicit none
  integer, external :: eaf_open, eaf_write, eaf_read, eaf_awrite, eaf_aread, eaf_wait, eaf_probe, eaf_close, eaf_delete, &
    eaf_length, eaf_truncate, eaf_stat, sf_create, sf_write, sf_read, sf_wait, sf_waitall, sf_destroy, eaf_util_szint
  logical, external :: eaf_eof
  double precision :: values(500), found(500), length
  integer :: fd, code, id, status, megabytes, handle, ids(2), i
  character(20) :: type
  character(80) :: message
  character(100) :: name, shared
  call expect(eaf_util_szint() == storage_size(fd) / 8, 'size of INTEGER')
  values = [(dble(i), i = 1, 500)]
  ! Both sizes are tested at the same time.
  write (name, '(a, i0)') '/var/tmp/outcore-test-names', storage_size(fd)
  write (shared, '(a, i0)') '/var/tmp/outcore-test-shared', storage_size(fd)
  call expect(eaf_open(name, -1, fd) == 0, 'open')
  call expect(eaf_write(fd, 8d0, values, 4000) == 0, 'write')
  code = eaf_read(fd, 8d0, found, 4000)
  call expect(code == 0 .and. all(found == values), 'read')
  code = eaf_awrite(fd, 0d0, values, 4000, id)
  call expect(code == 0 .and. eaf_wait(fd, id) == 0, 'write later')
  found = 0
  call expect(eaf_aread(fd, 0d0, found, 4000, id) == 0, 'read later')
  call expect(eaf_probe(id, status) == 0, 'probe')
  code = eaf_wait(fd, id)
  call expect(code == 0 .and. all(found == values), 'what was read')
  code = eaf_length(fd, length)
  call expect(code == 0 .and. length == 4008d0, 'length')
  code = eaf_read(fd, 4000d0, found, 4000)
  call expect(code /= 0 .and. eaf_eof(code) .and. .not. eaf_eof(0), 'end of file')
  call eaf_errmsg(code, message)
  call expect(index(message, 'end of') > 0, 'text')
  call expect(eaf_truncate(fd, 100d0) == 0, 'truncate')
  code = eaf_stat(name, megabytes, type)
  call expect(code == 0 .and. megabytes > 0 .and. type == 'UFS', 'stat')
  call eaf_print_stats(fd)
  call expect(eaf_close(fd) == 0, 'close')
  call expect(eaf_delete(name) == 0, 'delete')
  call expect(sf_create(shared, 1d6, -1d0, 4000d0, handle) == 0, 'create')
  code = sf_write(handle, 0d0, 4000d0, values, ids(1))
  call expect(code == 0 .and. sf_wait(ids(1)) == 0, 'write to a shared file')
  do i = 1, 2
    call expect(sf_read(handle, 2000d0 * (i - 1), 2000d0, found(250 * i - 249), ids(i)) == 0, 'read from it')
  end do
  code = sf_waitall(ids, 2)
  call expect(code == 0 .and. all(found == values), 'what was read from it')
  call expect(sf_write(handle, 999999d0, 2d0, values, ids(1)) /= 0, 'hard limit')
  call expect(sf_destroy(handle) == 0, 'destroy')
  call long_names(trim(name))
contains

  ! Names of any length, up to what the file system has; without the blanks behind them.
  subroutine long_names(place)
    character(*), intent(in) :: place
    character(2000) :: long
    integer :: depth
    long = place//'.long'
    do depth = 1, 7
      long = trim(long)//'/'//repeat('d', 200)
    end do
    call execute_command_line('mkdir -p '//trim(long))
    long = trim(long)//'/file'
    call expect(len_trim(long) > 1400, 'a long name')
    code = eaf_open(long, -1, fd)
    call expect(code == 0, 'open by a long name')
    call expect(eaf_close(fd) == 0, 'close')
    call expect(eaf_delete(long) == 0, 'delete by a long name')
    call expect(sf_create(long, 1d6, -1d0, 4000d0, handle) == 0, 'create by a long name')
    call expect(sf_destroy(handle) == 0, 'destroy')
    call execute_command_line('rm -r '//place//'.long')
  end subroutine

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine
end program
