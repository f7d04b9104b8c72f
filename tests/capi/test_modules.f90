! Each module of one concept has all that its calls take: no program unit here uses two of them, but for the world.
program test_modules
  use outcore_world, only: oc_world
  implicit none
  type(oc_world) :: world
  call world%open(alone=.true.)
  call sums()
  call of_memory()
  call on_disk()
  call of_tiles()
  call own_file()
  call file_of_all()
  call records()
  call checkpoint()
  call world%close()
contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine

  subroutine sums()
    use outcore_world
    integer(8) :: values(2)
    integer :: stat
    values = [3, 4]
    call world%reduce(values, oc_max, stat=stat)
    call expect(stat == oc_ok .and. all(values == [3, 4]), 'reduce')
  end subroutine

  subroutine of_memory()
    use outcore_ga
    type(oc_ga) :: array
    type(oc_request) :: requests(1)
    type(oc_box) :: box
    real(8), asynchronous :: values(4, 3), found(2, 3)
    values = 2
    box = section([2, 1], [3, 3])
    call array%create(world, oc_float64, [4, 3])
    call array%put(values)
    call array%get_async(found, requests(1), box=box)
    call wait_all(requests)
    call expect(all(found == 2), 'global array')
    call array%close()
  end subroutine

  subroutine on_disk()
    use outcore_dra
    type(oc_dra) :: array
    type(oc_request) :: requests(1)
    complex(4), asynchronous :: values(4, 3), found(2, 3)
    values = (1, 2)
    call array%create(world, oc_complex64, [4, 3])
    call array%put(values)
    call array%get_async(found, requests(1), box=section([2, 1], [3, 3]))
    call expect(wait_any(requests) == 1, 'wait for any')
    call requests(1)%wait()
    call expect(all(found == (1, 2)), 'disk array')
    call array%delete()
  end subroutine

  subroutine of_tiles()
    use outcore_sparse
    type(oc_sparse) :: array
    type(oc_request) :: request
    integer(4), asynchronous :: tile(2), found(2)
    integer, parameter :: long = selected_int_kind(18)
    tile = [5, 6]
    call array%create(world, oc_int32, [2_long], [0_long, 2_long, 4_long], [.true., .true.])
    call array%put([2_long], tile)
    call array%get_async([2_long], found, request)
    call request%wait()
    call expect(all(found == [5, 6]), 'tile')
    call array%delete()
  end subroutine

  subroutine own_file()
    use outcore_eaf
    type(oc_eaf) :: file
    type(oc_request) :: request
    integer, parameter :: long = selected_int_kind(18)
    real(4), asynchronous :: values(3), found(3)
    integer :: stat
    values = 7
    call file%open('modules', page_cache=oc_page_cache_buffered)
    call file%write_async(values, 0_long, request)
    call request%wait()
    call file%read(found, 4_long, stat=stat)
    call expect(stat == oc_end_of_file .and. all(found(:2) == 7), 'exclusive file')
    call file%delete()
  end subroutine

  subroutine file_of_all()
    use outcore_sf
    type(oc_sf) :: file
    type(oc_request) :: requests(1)
    integer, parameter :: long = selected_int_kind(18)
    real(4), asynchronous :: values(3), found(3)
    values = 7
    call file%create(world, 'modules')
    call file%write_async(values, 8_long, requests(1))
    call wait_all(requests)
    call file%read(found, 8_long)
    call expect(all(found == 7), 'shared file')
    call file%close()
  end subroutine

  subroutine records()
    use outcore_rf
    type(oc_rf) :: file
    type(oc_request) :: requests(1)
    integer, parameter :: long = selected_int_kind(18)
    real(4), asynchronous :: values(3), found(3)
    values = 7
    call file%create(world, 'modules', 2_long)
    call file%put_async(values, 1_long, requests(1))
    call wait_all(requests)
    call file%get(found, 1_long)
    call expect(all(found == 7), 'record')
    call file%close()
  end subroutine

  subroutine checkpoint()
    use outcore_checkpoint
    type(oc_checkpoint_saving) :: saving
    type(oc_checkpoint) :: saved
    character(*), parameter :: path = 'test_modules.checkpoint'
    real(8) :: energy
    integer(kind(oc_float64)) :: type
    call execute_command_line('rm -rf ' // path)
    energy = -76.25
    call saving%begin(world, path)
    call saving%add('energy', energy)
    call saving%commit()
    energy = 0
    call saved%open(world, path)
    call saved%inquire('energy', type)
    call saved%read('energy', energy)
    call expect(type == oc_float64 .and. energy == -76.25, 'checkpoint')
    call saved%close()
    call execute_command_line('rm -rf ' // path)
  end subroutine
end program test_modules
