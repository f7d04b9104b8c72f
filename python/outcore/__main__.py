from outcore.cli import main

main()
