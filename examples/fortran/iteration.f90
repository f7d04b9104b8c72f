!> An iteration that is stopped, and goes on where it was: its state is a persistent disk array, which is committed
!> together with the number of the iteration. The argument is its directory.
program iteration
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use outcore
  use mpi_job
  implicit none
  integer, parameter :: last = 12, stops_after = 5
  integer(int64), parameter :: n = 1000
  type(oc_world) :: world
  type(oc_ga) :: state
  character(4096) :: path

  call get_command_argument(1, path)
  if (path == '') path = 'iteration.state'
  call begin_job()
  call world%open()
  call state%create(world, oc_float64, [n, n])
  call run(until=stops_after)
  call state%zero()
  call run(until=last) ! as the next job would
  call check()
  call state%close()
  if (world%rank() == 0) print '(a)', 'iteration: right'
  call world%close()
  call end_job()

contains

  subroutine run(until)
    integer, intent(in) :: until
    type(oc_dra) :: saved
    integer :: cycle, stat
    character(:), allocatable :: text
    character(12) :: number
    cycle = 0
    call saved%open(world, path, writable=.true., stat=stat)
    if (stat == 0) then
      text = saved%metadata()
      read (text, *) cycle
      call saved%read_all(state)
    else ! there is none
      call saved%create(world, oc_float64, [n, n], path=path, metadata='0')
    end if
    do while (cycle < until)
      cycle = cycle + 1
      call step(cycle)
      call saved%write_all(state)
      write (number, '(i0)') cycle
      call saved%flush(metadata=trim(number))
    end do
    if (until == last) then
      call saved%delete()
    else
      call saved%close()
    end if
  end subroutine

  !> Each process changes the part that it holds.
  subroutine step(cycle)
    integer, intent(in) :: cycle
    integer(int64) :: lower(2), upper(2)
    real(real64), allocatable :: part(:, :)
    call state%distribution(world%rank(), lower, upper)
    if (all(upper >= lower)) then
      allocate(part(upper(1) - lower(1) + 1, upper(2) - lower(2) + 1))
      call state%get(part, box=section(lower, upper))
      part = 2 * part + cycle
      call state%put(part, box=section(lower, upper))
    end if
    call state%sync()
  end subroutine

  subroutine check()
    real(real64) :: wanted, found(n)
    integer :: cycle
    wanted = 0
    do cycle = 1, last
      wanted = 2 * wanted + cycle
    end do
    call state%get(found, box=section([1_int64, n / 2], [n, n / 2]))
    if (any(found /= wanted)) error stop 'iteration: wrong'
    call state%sync()
  end subroutine
end program
