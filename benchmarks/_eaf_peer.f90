! Reads or writes a file of records by Fortran direct access, and prints the seconds from open to close.
! Arguments: file, write|read, sequential|random, record size in bytes (a multiple of 8), records.
! The counterpart of _eaf_ours.c: same order of records, same check of every record.
program peer
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer(int64) :: bytes, records, i, start, finish, rate
  integer :: unit, recl
  character(4096) :: path, operation, kind_of_order, text
  real(real64), allocatable :: record(:)
  integer(int64), allocatable :: order(:)

  call get_command_argument(1, path)
  call get_command_argument(2, operation)
  call get_command_argument(3, kind_of_order)
  call get_command_argument(4, text)
  read (text, *) bytes
  call get_command_argument(5, text)
  read (text, *) records
  allocate (record(bytes / 8), order(records))
  record = 1
  call permute(kind_of_order == 'random')
  inquire (iolength=recl) record

  call system_clock(start, rate)
  open (newunit=unit, file=path, access='direct', form='unformatted', recl=recl)
  if (operation == 'write') then
    do i = 1, records
      record(1) = real(order(i), real64)
      write (unit, rec=order(i)) record
    end do
  else
    do i = 1, records
      read (unit, rec=order(i)) record
      if (record(1) /= real(order(i), real64)) error stop 'wrong record'
    end do
  end if
  close (unit)
  call system_clock(finish)
  print '(f0.6)', real(finish - start, real64) / real(rate, real64)

contains

  subroutine permute(shuffle)
    logical, intent(in) :: shuffle
    integer(int64) :: k, j, state, swapped
    order = [(k, k=1, records)]
    state = 12345
    if (.not. shuffle) return
    do k = records, 2, -1
      state = ieor(state, ishft(state, 13))
      state = ieor(state, ishft(state, -7))
      state = ieor(state, ishft(state, 17))
      j = 1 + modulo(ishft(state, -1), k)
      swapped = order(k)
      order(k) = order(j)
      order(j) = swapped
    end do
  end subroutine

end program peer
