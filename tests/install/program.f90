! A program of a user. It ends with the error that it provokes.
program in_fortran
  use, intrinsic :: iso_fortran_env, only: int64
  use outcore
  implicit none
  type(oc_world) :: world
  type(oc_dra) :: array
  integer :: stat
  character(400) :: errmsg
  real(8) :: values(3, 4), found(4)
  values = reshape([(real(stat, 8), stat = 1, 12)], [3, 4])
  call world%open(alone=.true.)
  call array%create(world, oc_float64, [3, 4])
  call array%put(values)
  call array%get(found, box=section([2, 1], [2, 4]))
  if (any(abs(found - values(2, :)) > 0)) error stop 'other values'
  call array%get(found, box=section([2, 1], [2, 5]), stat=stat, errmsg=errmsg)
  if (stat == 0) error stop 'no error'
  call array%close()
  call world%close()
  print '(a)', trim(errmsg)
end program
