!> Integrals stored once in an exclusive file, and read in each of several iterations, one buffer ahead.
program integrals
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  use mpi_job
  implicit none
  integer(int64), parameter :: records = 40, length = 5000, bytes = 8 * length
  integer, parameter :: iterations = 3
  type(oc_world) :: world
  type(oc_eaf) :: file
  type(oc_request) :: request(0:1)
  real(real64), asynchronous :: buffer(length, 0:1)
  real(real64) :: total(1), density, wanted
  integer(int64) :: record, side, first, i
  integer :: iteration

  call begin_job()
  call world%open()
  first = world%rank()
  call file%open('integrals', expected_bytes=records * bytes)
  do record = 0, records - 1
    do i = 1, length
      buffer(i, 0) = integral(record, i)
    end do
    call file%write(buffer(:, 0), record * bytes)
  end do
  wanted = 0
  do record = 0, records * world%size() - 1
    wanted = wanted + sum([(real(mod(record * 13 + i, 101_int64), real64), i = 1, length)])
  end do

  density = 1
  do iteration = 1, iterations
    total = 0
    call file%read_async(buffer(:, 0), 0_int64, request(0))
    do record = 0, records - 1
      side = mod(record, 2_int64)
      if (record + 1 < records) call file%read_async(buffer(:, 1 - side), (record + 1) * bytes, request(1 - side))
      call request(side)%wait()
      total = total + density * sum(buffer(:, side))
    end do
    call world%reduce(total, oc_sum)
    if (total(1) /= density * wanted) error stop 'integrals: wrong'
    density = 2 * density
  end do
  call file%delete()
  if (world%rank() == 0) print '(a)', 'integrals: right'
  call world%close()
  call end_job()

contains

  !> Stands for the integrals of a real program: the records of all processes are different.
  pure real(real64) function integral(its_record, number)
    integer(int64), intent(in) :: its_record, number
    integral = real(mod((its_record + records * first) * 13 + number, 101_int64), real64)
  end function
end program
