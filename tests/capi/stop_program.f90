! An error without `stat` stops the program with its text, at all processes: one reads outside of an array, the
! others wait for it. With the argument `all` it is an error of all: they make an array that cannot be.
program stop_program
  use, intrinsic :: iso_fortran_env, only: real64
  use outcore
  use mpi_job
  implicit none
  type(oc_world) :: world
  type(oc_ga) :: array
  real(real64) :: values(3, 3)
  character(3) :: which
  call begin_job()
  call world%open()
  call get_command_argument(1, which)
  if (which == 'all') call array%create(world, oc_float64, [3, -3])
  call array%create(world, oc_float64, [3, 3])
  if (world%rank() == 0) call array%get(values, box=section([1, 2], [3, 4]))
  call world%barrier()
  print '(a)', 'not reached'
end program stop_program
