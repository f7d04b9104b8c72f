from outcore.cli.main import main

main()
