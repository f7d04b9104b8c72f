!> An iteration that is stopped and continues: its state is a checkpoint of a global array and of the numbers that
!> belong to it. The argument is the directory of the checkpoint.
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
  call run(until=stops_after, from=0)
  call state%zero()
  call run(until=last, from=stops_after) ! as the next job would
  call check()
  call state%close()
  if (world%rank() == 0) print '(a)', 'iteration: right'
  call world%close()
  call end_job()

contains

  subroutine run(until, from)
    integer, intent(in) :: until, from
    type(oc_checkpoint) :: found
    type(oc_checkpoint_saving) :: saving
    integer :: cycle, stat
    real(real64) :: residuals(last)
    character(:), allocatable :: text
    cycle = 0
    call found%open(world, path, stat=stat)
    if (stat == 0) then ! else there is no checkpoint
      text = found%metadata()
      read (text, *) cycle
      if (cycle == last) cycle = 0 ! the run before came to its end
      if (cycle > 0) call found%read('state', state)
      if (cycle > 0) call found%read('residuals', residuals)
      call found%close()
    end if
    if (cycle /= from) error stop 'iteration: it does not go on where it was'
    do while (cycle < until)
      cycle = cycle + 1
      call step(cycle)
      residuals(cycle) = 1.0_real64 / cycle
      call saving%begin(world, path)
      call saving%add('state', state)
      call saving%add('residuals', residuals)
      call saving%commit(metadata=text_of(cycle))
    end do
    if (any(residuals(:until) /= [(1.0_real64 / cycle, cycle = 1, until)])) error stop 'iteration: other residuals'
  end subroutine

  function text_of(number) result(text)
    integer, intent(in) :: number
    character(12) :: text
    write (text, '(i0)') number
  end function

  !> Each process changes its own part.
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
