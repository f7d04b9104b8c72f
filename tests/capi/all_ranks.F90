! Memory of every kind and rank, through every call that takes memory.
program all_ranks
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use outcore
  implicit none
  type(oc_world) :: world
  type(oc_ga) :: memory
  type(oc_dra) :: disk
  type(oc_sparse) :: tiles
  type(oc_eaf) :: own
  type(oc_sf) :: shared
  type(oc_rf) :: records
  type(oc_request) :: requests(2)
  integer(c_int) :: its_type
  call world%open(alone=.true.)
  call own%open('all_ranks')
  call shared%create(world, 'all_ranks')
  call records%create(world, 'all_ranks', 3_int64)
  its_type = oc_float32
  call of_real32()
  its_type = oc_float64
  call of_real64()
  its_type = oc_complex64
  call of_complex32()
  its_type = oc_complex128
  call of_complex64()
  its_type = oc_int32
  call of_int32()
  its_type = oc_int64
  call of_int64()
  call records%close()
  call shared%close()
  call own%delete()
  call world%close()
contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine

  !> Of an array of one tile.
  function boundaries_of(extents) result(boundaries)
    integer(int64), intent(in) :: extents(:)
    integer(int64) :: boundaries(2 * size(extents))
    boundaries = 0
    boundaries(2::2) = extents
  end function

#define KIND real(real32)
  subroutine of_real32()
#include "all_ranks.inc"
  end subroutine
#undef KIND
#define KIND real(real64)
  subroutine of_real64()
#include "all_ranks.inc"
  end subroutine
#undef KIND
#define KIND complex(real32)
  subroutine of_complex32()
#include "all_ranks.inc"
  end subroutine
#undef KIND
#define KIND complex(real64)
  subroutine of_complex64()
#include "all_ranks.inc"
  end subroutine
#undef KIND
#define KIND integer(int32)
  subroutine of_int32()
#include "all_ranks.inc"
  end subroutine
#undef KIND
#define KIND integer(int64)
  subroutine of_int64()
#include "all_ranks.inc"
  end subroutine
end program all_ranks
