! Exclusive and shared files by their classic names from Fortran, with INTEGER of the size that the library has.
! The order in which operands are evaluated is open, so calls that change something stand alone.
program test_names
  implicit none
  integer, external :: eaf_open, eaf_write, eaf_read, eaf_awrite, eaf_aread, eaf_wait, eaf_probe, eaf_close, eaf_delete, &
    eaf_length, eaf_truncate, eaf_stat, sf_create, sf_write, sf_read, sf_wait, sf_waitall, sf_destroy, &
    sf_create_suffix, sf_open, sf_close, sf_rwtor, sf_fsync, eaf_util_szint
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
  call states_of_a_shared_file()
  call disk_arrays()
  call long_names(trim(name))
contains

  ! Closed, open again, only read; the texts of what is refused.
  subroutine states_of_a_shared_file()
    character(200) :: text
    call expect(sf_create_suffix(shared, 1d6, -1d0, 4000d0, handle, 7) == 0, 'create with a suffix')
    code = sf_write(handle, 0d0, 4000d0, values, ids(1))
    call expect(code == 0, 'write')
    call expect(sf_wait(ids(1)) == 0, 'wait')
    call expect(sf_fsync(handle) == 0, 'write all to the disk')
    code = sf_write(handle, 999999d0, 2d0, values, ids(1))
    if (code == 0) code = sf_wait(ids(1))
    call sf_errmsg(code, text)
    call expect(index(text, 'SF: write of 2 bytes at offset 999999 of ') == 1, 'what was attempted')
    call expect(index(text, trim(shared(10:))//'.7: File too large') > 0, 'file with a suffix, and reason')

    call expect(sf_close(handle) == 0, 'close a shared file')
    code = sf_read(handle, 0d0, 4000d0, found, ids(1))
    call expect(code /= 0, 'a closed file is not read')
    call sf_errmsg(code, text)
    call expect(index(text, trim(shared)//'.7 is closed') > 0, 'text of a closed file')
    call expect(sf_open(handle) == 0, 'open it again')
    found = 0
    code = sf_read(handle, 0d0, 4000d0, found, ids(1))
    call expect(code == 0, 'read what was closed')
    code = sf_wait(ids(1))
    call expect(code == 0 .and. all(found == values), 'what was there before it was closed')

    call expect(sf_rwtor(handle) == 0, 'make it read only')
    code = sf_write(handle, 0d0, 4000d0, values, ids(1))
    call expect(code /= 0, 'a file that is read only is not written')
    call sf_errmsg(code, text)
    call expect(index(text, 'read only') > 0, 'text of a file that is read only')
    found = 0
    code = sf_read(handle, 0d0, 4000d0, found, ids(1))
    call expect(code == 0, 'read what is read only')
    code = sf_wait(ids(1))
    call expect(code == 0 .and. all(found == values), 'what a file has that is read only')

    call expect(sf_destroy(handle) == 0, 'destroy')
    call expect(sf_open(handle) /= 0, 'open what is destroyed')
    call expect(sf_close(handle) /= 0, 'close what is destroyed')
    call expect(sf_rwtor(handle) /= 0, 'make read only what is destroyed')
    code = sf_fsync(handle)
    call sf_errmsg(code, text)
    call expect(code /= 0 .and. index(text, 'there is no file') > 0, 'text of what is destroyed')
    call sf_errmsg(0, text)
    call expect(text == 'OK', 'text of no error')
  end subroutine

  ! Without Global Arrays they are made, asked and removed; there is no memory to write from.
  subroutine disk_arrays()
    integer, external :: dra_init, dra_create, ndra_create, ndra_create_config, dra_open, dra_close, &
      dra_inquire, ndra_inquire, dra_delete, dra_write, ndra_write, dra_read, ndra_read, &
      dra_write_section, ndra_write_section, dra_read_section, ndra_read_section, dra_probe, dra_wait, dra_set_debug, dra_terminate
    integer, parameter :: real_of_8 = 1013, integers = 1010, read_and_write = -1, invalid = -333
    integer :: array, cube, type, rows, columns, axes, dims(7), request
    character(80) :: title
    character(200) :: file, path
    write (path, '(a, i0)') '/var/tmp/outcore-test-array', storage_size(fd)
    call expect(dra_init(10, 1d9, 1d10, -1d0) == 0, 'begin')
    call dra_set_default_config(2, 1)
    code = dra_create(real_of_8, 30, 20, 'matrix', path, read_and_write, -1, 5, array)
    call expect(code == 0, 'create a matrix')
    code = dra_inquire(array, type, rows, columns, title, file)
    call expect(code == 0 .and. type == real_of_8 .and. rows == 30 .and. columns == 20, 'what it is')
    call expect(title == 'matrix' .and. file == path, 'its names')
    do i = 1, 6
      request = 0
      select case (i)
      case (1)
        code = dra_write(1, array, request)
      case (2)
        code = ndra_write(1, array, request)
      case (3)
        code = dra_read(1, array, request)
      case (4)
        code = ndra_read(1, array, request)
      case (5)
        code = dra_write_section(.false., 1, 1, 2, 1, 2, array, 1, 2, 1, 2, request)
      case (6)
        code = ndra_read_section(.false., 1, [1, 1], [2, 2], array, [1, 1], [2, 2], request)
      end select
      call expect(code /= 0 .and. request == invalid, 'no memory to move')
    end do
    code = dra_read_section(.false., 1, 1, 2, 1, 2, array, 1, 2, 1, 2, request)
    call expect(code /= 0, 'no memory to read into')
    code = ndra_write_section(.false., 1, [1, 1], [2, 2], array, [1, 1], [2, 2], request)
    call expect(code /= 0, 'no memory to write from')
    code = dra_probe(request, status)
    call expect(code == 0 .and. status == 0, 'ask for no request')
    call expect(dra_wait(request) == 0, 'wait for no request')
    call expect(dra_close(array) == 0, 'close')
    call expect(dra_open(path, read_and_write, array) == 0, 'open')
    call expect(dra_delete(array) == 0, 'delete')
    code = ndra_create(integers, 3, [4, 5, 6], 'cube', path, read_and_write, [-1, -1, 2], cube)
    call expect(code == 0, 'create a cube')
    code = ndra_inquire(cube, type, axes, dims, title, file)
    call expect(code == 0 .and. type == integers .and. axes == 3, 'what a cube is')
    call expect(all(dims(:3) == [4, 5, 6]), 'its dimensions')
    call dra_print_internals(cube)
    call dra_flick()
    call expect(dra_delete(cube) == 0, 'delete a cube')
    code = ndra_create_config(integers, 2, [4, 5], 'two', path, read_and_write, [-1, -1], 1, 1, cube)
    call expect(code == 0, 'create with a number of files')
    call expect(dra_delete(cube) == 0, 'delete what has a number of files')
    call expect(dra_set_debug(.false.) == 0, 'print no errors')
    call expect(dra_close(array) /= 0, 'close what is deleted')
    call expect(dra_terminate() == 0, 'end')
  end subroutine

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
