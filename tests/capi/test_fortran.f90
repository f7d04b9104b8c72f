! The Fortran modules on one process: files, arrays, requests, and errors with their text.
program test_fortran
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use outcore
  implicit none
  type(oc_world) :: world
  call world%open()
  call exclusive_files()
  call a_file_that_is_only_read()
  call shared_and_record_files()
  call global_arrays()
  call disk_arrays()
  call all_kinds_and_ranks()
  call block_sparse_arrays()
  call checkpoints()
  call distributions_and_elements()
  call lists_of_another_length()
  call errors()
  call expect(world%rank() == 0 .and. world%size() == 1, 'rank and size')
  call world%close()
contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (.not. condition) error stop what
  end subroutine

  subroutine exclusive_files()
    integer(int64), parameter :: n = 2000
    real(real64), asynchronous :: values(n, 2), other(n, 2)
    type(oc_eaf) :: file
    type(oc_request) :: requests(2)
    integer(int64) :: i, bytes
    integer :: stat, which
    character(400) :: errmsg
    values = reshape([(real(i, real64), i = 1, 2 * n)], [n, 2_int64])
    other = 0
    call file%open('ints')
    call file%write(values, 800_int64)
    call file%read(other, 800_int64, bytes=bytes)
    call expect(bytes == 16 * n .and. all(other == values), 'the same values')
    other = 0
    call file%write_async(values, 0_int64, requests(1))
    call requests(1)%wait()
    do i = 1, 2
      call file%read_async(other(:, i), (i - 1) * 8 * n, requests(i))
    end do
    which = wait_any(requests)
    call expect(which == 1 .or. which == 2, 'wait for any')
    call wait_all(requests)
    call expect(all(other == values), 'the same values in two requests')
    call file%write(values(1:3, :), 0_int64) ! not contiguous
    call file%read(other(1:6, 1), 0_int64)
    call expect(all(other(1:6, 1) == [values(1:3, 1), values(1:3, 2)]), 'a section that is not contiguous')
    call file%read_async(other(1:3, :), 0_int64, requests(1), stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'contiguous') > 0, 'which no request may have')
    call file%truncate(100_int64)
    call expect(file%length() == 100 .and. file%at_end(100_int64) .and. .not. file%at_end(99_int64), 'length')
    call file%read(other, 0_int64, stat=stat, errmsg=errmsg)
    call expect(stat == oc_end_of_file .and. index(errmsg, 'after 100 bytes') > 0, 'end of file')
    call file%delete()
    call file%close(stat=stat)
    call expect(stat /= 0, 'a closed file is refused')
    call file%open('ints', scratch='/nonexistent', stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '/nonexistent') > 0, 'a missing directory is refused')
  end subroutine

  subroutine a_file_that_is_only_read()
    real(real64), asynchronous :: values(100), other(100)
    type(oc_eaf) :: file
    type(oc_request) :: request
    integer :: stat
    character(400) :: errmsg
    values = 2.5
    other = 0
    call file%open('only_read', keep=.true.)
    call file%write(values, 0_int64)
    call file%close()
    call file%open('only_read', keep=.true., read_only=.true.)
    call file%read(other, 0_int64)
    call expect(all(other == values), 'what is only read')
    call file%write(other, 0_int64, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'only_read') > 0, 'it is not written')
    call file%write_async(values, 0_int64, request, stat=stat)
    call expect(stat /= 0, 'nor later')
    call file%truncate(0_int64, stat=stat)
    call expect(stat /= 0 .and. file%length() == 800, 'nor cut')
    call file%close()
    call file%open('only_read', keep=.true., read_only=.false.)
    call file%write(values, 800_int64)
    call expect(file%length() == 1600, 'a file that is written, too')
    call file%delete()
    call file%open('only_read', keep=.true., read_only=.true., stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'only_read') > 0, 'a missing file that is only read')
  end subroutine

  subroutine shared_and_record_files()
    type(oc_sf) :: shared
    type(oc_rf) :: records
    integer(int32), asynchronous :: values(10), found(10)
    integer(int64) :: bytes, i
    type(oc_request) :: request
    values = [(int(3 * i, int32), i = 1, 10)]
    call shared%create(world, 'amplitudes', hard_limit=1000_int64)
    call shared%write(values, 40_int64)
    call shared%read_async(found, 40_int64, request)
    call request%wait()
    call expect(all(found == values) .and. shared%length() == 80, 'shared file')
    call shared%close()
    call records%create(world, 'vectors', 5_int64)
    call records%put(values(:7), 3_int64)
    found = 0
    call records%get(found, 3_int64, bytes=bytes)
    call expect(bytes == 28 .and. all(found(:7) == values(:7)) .and. records%size(3_int64) == 28, 'record')
    call records%close()
  end subroutine

  subroutine global_arrays()
    type(oc_ga) :: a, b, c
    integer :: stat
    real(real64), asynchronous :: values(6, 4), found(4, 2)
    real(real64) :: square(6, 6)
    type(oc_request) :: request
    integer(int64) :: i, lower(2), upper(2)
    real(real64) :: product
    values = reshape([(real(i, real64), i = 1, 24)], [6, 4])
    call a%create(world, oc_float64, [6, 4])
    call b%create(world, oc_float64, [6_int64, 4_int64])
    call a%put(values)
    call a%get_async(found, request, box=section([2, 3], [5, 4]))
    call request%wait()
    call expect(all(found == values(2:5, 3:4)), 'part of a global array')
    call a%acc(found, box=section([1, 1], [4, 2]), alpha=2.0_real64)
    values(1:4, 1:2) = values(1:4, 1:2) + 2 * found
    call a%copy_to(b)
    call a%dot(b, product)
    call expect(product == sum(values**2), 'dot product')
    call c%create(world, oc_float64, [6, 6])
    call c%gemm('N', 'T', 2.0_real64, a, a, 0.0_real64)
    call c%get(square)
    call expect(all(abs(square - 2 * matmul(values, transpose(values))) < 1e-9_real64), 'product')
    call c%gemm('T', 'N', (1.0_real64, 0.0_real64), a, a, (0.0_real64, 0.0_real64), stat=stat)
    call expect(stat /= 0, 'factors of another type are refused')
    call c%close()
    call a%distribution(0, lower, upper)
    call expect(all(lower == 1) .and. all(upper == [6, 4]), 'distribution')
    call a%close()
    call b%close()
    call a%create(world, oc_int64, [3])
    call expect(a%read_increment([2_int64], 5_int64) == 0 .and. a%read_increment([2_int64], 5_int64) == 5, 'increment')
    call a%close()
  end subroutine

  subroutine disk_arrays()
    type(oc_ga) :: memory, turned
    type(oc_dra) :: array
    type(oc_request) :: request
    real(real64) :: values(5, 3, 2), found(2, 5, 3), part(2, 2)
    integer :: i
    values = reshape([(real(i, real64), i = 1, 30)], [5, 3, 2])
    call memory%create(world, oc_float64, [5, 3, 2])
    call turned%create(world, oc_float64, [2, 5, 3])
    call array%create(world, oc_float64, [5, 3, 2], typical=[5, 3, 1], metadata='of a test')
    call memory%put(values)
    call array%write_all_async(memory, request)
    call request%wait()
    call array%prefetch(section([2, 1, 2], [3, 2, 2]))
    call array%get(part, box=section([2, 1, 2], [3, 2, 2]))
    call expect(all(part == values(2:3, 1:2, 2)), 'part of a disk array')
    call array%read_all(turned, order=[2, 3, 1]) ! axis 1 of the array is axis 2 of `turned`
    call turned%get(found)
    do i = 1, 2
      call expect(all(found(i, :, :) == values(:, :, i)), 'another order of axes')
    end do
    call turned%zero()
    call array%read_all_async(turned, request, order=[2, 3, 1])
    do while (.not. request%done())
    end do
    call expect(request%done(stat=i) .and. i == 0, 'done, until it is waited for')
    call request%wait()
    call turned%get(found)
    do i = 1, 2
      call expect(all(found(i, :, :) == values(:, :, i)), 'what was read later')
    end do
    call expect(.not. request%done(stat=i) .and. i /= 0, 'no request is not done')
    call array%read_all_async(memory, request, box=section([1, 1, 2], [5, 3, 2]), &
      from=section([1, 1, 1], [5, 3, 2]))
    call request%wait(stat=i) ! as of all that all processes begin
    call expect(i /= 0, 'boxes of other shapes')
    call array%read_all_async(memory, request, box=section([1, 1, 2], [5, 3, 2]), &
      from=section([1, 1, 1], [5, 3, 1]))
    call request%wait()
    call memory%get(part, box=section([1, 1, 1], [2, 2, 1]))
    call expect(all(part == values(1:2, 1:2, 2)), 'a box that was read later')
    call array%get(part, box=section([2, 1, 2], [3, 2, 2]))
    call array%put(part, box=section([1, 1, 1], [2, 2, 1]))
    call array%read_all(memory, box=section([1, 1, 1], [5, 3, 1]), from=section([1, 1, 2], [5, 3, 2]))
    call memory%get(part, box=section([1, 1, 2], [2, 2, 2]))
    call expect(all(part == values(2:3, 1:2, 2)) .and. array%metadata() == 'of a test', 'a section')
    call array%close()
    call memory%close()
    call turned%close()
  end subroutine

  subroutine checkpoints()
    type(oc_checkpoint_saving) :: saving
    type(oc_checkpoint) :: saved
    type(oc_ga) :: memory, back
    type(oc_dra) :: on_disk
    real(real64) :: values(5, 3), found(5, 3), part(5)
    complex(real32) :: factors(2, 3), other(2, 3)
    integer(int64) :: number, found_number
    integer(int64), allocatable :: its_shape(:)
    integer :: i, stat
    integer(kind(oc_int64)) :: type
    character(400) :: errmsg
    ! Not that of the program with another size of INTEGER.
    character(*), parameter :: path = 'test_fortran.checkpoint' // achar(iachar('0') + kind(i))
    call execute_command_line('rm -rf ' // path)
    values = reshape([(real(i, real64), i = 1, 15)], [5, 3])
    factors = (1.5_real32, -2.0_real32)
    factors(2, 1) = 7
    number = 12
    call memory%create(world, oc_float64, [5, 3])
    call back%create(world, oc_float64, [5, 3])
    call on_disk%create(world, oc_float64, [5, 3])
    call memory%put(values)
    call on_disk%put(values)
    call saved%open(world, path, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, path) > 0, 'there is no checkpoint')
    call saving%begin(world, path)
    call saving%add('row', values(1, :), stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'contiguous') > 0, 'what is not contiguous is refused')
    call saving%abandon()
    call saving%begin(world, path)
    call saving%add('t2', memory)
    call saving%add('disk', on_disk)
    call saving%add('factors', factors)
    call saving%add('number', number)
    call saving%commit(metadata='cycle 12')
    call saving%commit(stat=stat)
    call expect(stat /= 0, 'it is committed once')
    call saved%open(world, path)
    call expect(saved%metadata() == 'cycle 12' .and. saved%count() == 4 .and. saved%name(2) == 'disk', 'what it has')
    call saved%inquire('factors', type, its_shape)
    call expect(type == oc_complex64 .and. all(its_shape == [2, 3]), 'type and shape')
    call saved%inquire('number', shape=its_shape)
    call expect(size(its_shape) == 0, 'a scalar')
    call saved%read('t2', back)
    call back%get(found)
    call expect(all(found == values), 'a global array')
    call saved%read('factors', other)
    call saved%read('number', found_number)
    call expect(all(other == factors) .and. found_number == 12, 'values')
    call saved%read('number', found, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'another type') > 0, 'another type is refused')
    call saved%read('t2', part, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '120 bytes') > 0, 'another size is refused')
    call on_disk%close()
    call saved%open_array('disk', on_disk)
    call on_disk%get(part, box=section([1, 3], [5, 3]))
    call expect(all(part == values(:, 3)), 'a disk array')
    call on_disk%close()
    call saved%close()
    call memory%close()
    call back%close()
    call execute_command_line('rm -rf ' // path)
  end subroutine

  subroutine all_kinds_and_ranks()
    type(oc_dra) :: array
    complex(real64) :: c(2, 1, 2, 1, 2, 1, 2), c_found(2, 1, 2, 1, 2, 1, 2)
    complex(real32) :: s(3), s_found(3)
    real(real32) :: r(2, 2), r_found(2, 2)
    integer(int32) :: i(4), i_found(4)
    integer(int64) :: l(1, 2, 3), l_found(1, 2, 3)
    integer :: k
    c = reshape([(cmplx(k, -k, real64), k = 1, 16)], shape(c))
    call array%create(world, oc_complex128, shape(c))
    call array%put(c)
    call array%acc(c, alpha=(0.0_real64, 1.0_real64))
    call array%get(c_found)
    call expect(all(c_found == c * (1.0_real64, 1.0_real64)), 'complex128')
    call array%close()
    s = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    call array%create(world, oc_complex64, [3])
    call array%put(s)
    call array%get(s_found)
    call expect(all(s_found == s), 'complex64')
    call array%close()
    r = reshape([1.0, 2.0, 3.0, 4.0], [2, 2])
    call array%create(world, oc_float32, [2, 2])
    call array%put(r)
    call array%get(r_found)
    call expect(all(r_found == r), 'float32')
    call array%close()
    i = [1_int32, -2_int32, 3_int32, -4_int32]
    call array%create(world, oc_int32, [4])
    call array%put(i)
    call array%get(i_found)
    call expect(all(i_found == i), 'int32')
    call array%close()
    l = reshape([(int(k, int64) * 2_int64**33, k = 1, 6)], [1, 2, 3])
    call array%create(world, oc_int64, [1, 2, 3])
    call array%put(l)
    call array%get(l_found)
    call expect(all(l_found == l), 'int64')
    call array%close()
  end subroutine

  subroutine distributions_and_elements()
    type(oc_ga) :: a, b, c
    type(oc_world) :: part
    type(oc_counter) :: counter
    type(oc_lock) :: lock
    type(c_ptr) :: address
    real(real32), pointer :: mine(:, :)
    real(real32) :: values(2), total
    integer(int64) :: extents(2), sums(1), one(3, 1)
    integer :: stat
    character(400) :: errmsg
    call a%create(world, oc_float32, [6, 4], blocks=[1, 1], begins=[1, 1])
    call b%create(world, oc_float32, [6, 4], block=[2, 3])
    call c%create(world, oc_float32, [6_int64, 4_int64], block=[2_int64, 3_int64], grid=[1_int64, 1_int64])
    call a%fill(2.0_real32)
    call a%copy_to(b)
    call b%scatter(reshape([6_int64, 1_int64, 5_int64, 4_int64], [2, 2]), [7.0_real32, 8.0_real32])
    call b%scatter_acc(reshape([5_int64, 4_int64], [2, 1]), [1.0_real32], alpha=0.5_real32)
    call b%sync()
    call b%gather(reshape([5_int64, 4_int64, 6_int64, 1_int64], [2, 2]), values)
    call expect(all(values == [8.5_real32, 7.0_real32]), 'gather what was scattered')
    call expect(b%owner([6_int64, 1_int64]) == 0, 'owner')
    call a%dot(a, total)
    call expect(total == 24 * 4, 'dot product')
    call a%local(address, extents)
    call c_f_pointer(address, mine, extents)
    call expect(all(extents == [6, 4]) .and. all(mine == 2), 'the local part')
    mine(6, 1) = 5
    call a%sync()
    call a%gather(reshape([6_int64, 1_int64], [2, 1]), values(1:1))
    call expect(values(1) == 5, 'a store to the local part')
    call a%create(world, oc_float32, [6, 4], blocks=[1, 1], begins=[1], stat=stat)
    call expect(stat /= 0, 'too few first indices')
    call a%create(world, oc_float32, [6, 4], block=[2, 3, 4], stat=stat)
    call expect(stat /= 0, 'a block of another rank')
    call b%fill(1, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'another type') > 0, 'a value of another type')
    one = 1
    call b%gather(one, values(1:1), stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '3 numbers') > 0, 'an index of another rank')
    call b%scatter(one(:2, :), values, stat=stat)
    call expect(stat /= 0, 'fewer indices than elements')
    call b%close()
    call c%close()
    call world%split(0, 0, part)
    sums = 3
    call part%reduce(sums, oc_sum)
    call expect(part%size() == 1 .and. sums(1) == 3, 'a part of the world')
    call part%close()
    call counter%create(world)
    call expect(counter%next(5_int64) == 0 .and. counter%next() == 5, 'counter')
    call counter%reset()
    call expect(counter%next() == 0, 'counter from zero')
    call counter%close()
    call lock%create(world)
    call lock%unlock(stat=stat)
    call expect(stat /= 0, 'a lock that is not held')
    call lock%lock()
    call lock%unlock()
    call lock%close()
  end subroutine

  ! Lists that are longer or shorter than the rank: errors, not memory that is not theirs.
  subroutine lists_of_another_length()
    integer(int64), parameter :: nine(9) = 1
    type(oc_ga) :: memory
    type(oc_dra) :: array
    real(real64) :: value(1)
    integer(int64) :: before, few(1)
    integer :: stat
    character(400) :: errmsg
    call memory%create(world, oc_float64, nine, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '9') > 0, 'rank 9 in memory')
    call memory%put(value, stat=stat)
    call expect(stat /= 0, 'which is not open')
    call array%create(world, oc_float64, nine, stat=stat)
    call expect(stat /= 0, 'rank 9 on disk')
    call array%create(world, oc_float64, [3, 3], typical=[3, 3, 3], stat=stat)
    call expect(stat /= 0, 'a typical section of another rank')
    call memory%create(world, oc_int64, [3, 3])
    call array%create(world, oc_int64, [3, 3])
    before = memory%read_increment(nine, 1_int64, stat=stat)
    call expect(stat /= 0 .and. before == 0, 'an index of nine numbers')
    call memory%distribution(0, few, few, stat=stat)
    call expect(stat /= 0, 'room for one number')
    before = memory%owner(nine, stat=stat)
    call expect(stat /= 0, 'the owner of nine numbers')
    call array%prefetch(section([1], [2]), stat=stat)
    call expect(stat /= 0, 'a box of another rank')
    call array%write_all(memory, box=section([1], [2]), stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'differ in rank') > 0, 'a transfer of a box of another rank')
    call array%read_all(memory, order=[1, 2, 3], stat=stat)
    call expect(stat /= 0, 'an order of three axes')
    call array%close()
    call memory%close()
  end subroutine

  subroutine block_sparse_arrays()
    type(oc_sparse) :: array
    real(real64) :: tile(2, 3), found(2, 3)
    integer :: k, stat
    character(400) :: errmsg
    tile = reshape([(real(k, real64), k = 1, 6)], [2, 3])
    ! Rows 1-2 and 3-5, columns 1-3 and 4-7; the tile of the first rows and last columns is zero.
    call array%create(world, oc_float64, [2_int64, 2_int64], [integer(int64) :: 0, 2, 5, 0, 3, 7], &
                      [.true., .true., .false., .true.])
    call array%put([1_int64, 1_int64], tile)
    call array%acc([1_int64, 1_int64], tile)
    call array%get([1_int64, 1_int64], found)
    call expect(all(found == 2 * tile), 'tile')
    call array%put([1_int64, 2_int64], [tile, tile], stat=stat)
    call expect(stat /= 0, 'a zero tile')
    call array%get([2_int64, 1_int64], found, stat=stat)
    call expect(stat /= 0, 'a tile of another size')
    call array%prefetch([1_int64, 1_int64])
    call array%prefetch([1_int64], stat=stat)
    call expect(stat /= 0, 'a tile of another rank')
    call array%flush()
    call array%delete()
    call array%create(world, oc_float64, [2_int64], [0_int64, 2_int64], [.true., .true.], stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'fit together') > 0, 'too few boundaries')
  end subroutine

  subroutine errors()
    type(oc_dra) :: array
    type(oc_request) :: request
    real(real64), asynchronous :: values(3, 3)
    integer(int32) :: others(9)
    integer :: stat
    character(400) :: errmsg
    values = 1
    others = 1
    call array%put(values, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'not open') > 0, 'an array that is not open')
    call array%create(world, oc_float64, [3, 3])
    call array%put(others, stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, 'another type') > 0, 'another type')
    call array%put(values, box=section([1], [9]), stat=stat)
    call expect(stat /= 0, 'another rank')
    call array%put(values, box=section([1, 2], [3, 4]), stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '[1:4, 0:3]') > 0, 'a box outside')
    call array%get_async(values, request, box=section([0, 1], [2, 3]), stat=stat)
    call expect(stat /= 0, 'a box outside, later')
    call request%wait(stat=stat)
    call expect(stat /= 0, 'no request')
    call array%close()
    call array%open(world, '/nonexistent/array', stat=stat, errmsg=errmsg)
    call expect(stat /= 0 .and. index(errmsg, '/nonexistent') > 0, 'no array there')
    call array%create(world, 99_int32, [3, 3], stat=stat)
    call expect(stat /= 0, 'no type')
  end subroutine
end program test_fortran
