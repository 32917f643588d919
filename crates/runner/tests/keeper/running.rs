//! Commands that run to their end.

use std::os::unix::fs::PermissionsExt;

use undaunted_runner::keeper::{CommandSpec, KeeperEvent};
use undaunted_runner::spool::{CommandEnd, EndedBy, NotStartedCommand, StartRefusal};

use crate::fixture::{KeeperFixture, exited, is_alive, kill_and_wait, next_event};

#[test]
fn a_command_runs_with_exactly_what_it_was_given() {
    let (fixture, keeper) = KeeperFixture::started();
    std::fs::write(fixture.path("input"), "from the input").unwrap();
    let script = r#"printf '%s|%s|%s|%s' "$1" "$NAME" "$PWD" "$(cat)"; echo "$HOME" >&2; exit 7"#;
    let mut spec = fixture.shell(1, script);
    spec.argv.extend(["sh".into(), "a b'c\n".into()]);
    spec.env.push(("NAME".into(), "välue".into()));
    spec.stdin = Some("input".into());
    let expected = format!("a b'c\n|välue|{}|from the input", spec.working_dir.display());
    keeper.run(spec).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!((ended.end, ended.why, ended.left), (CommandEnd::Code(7), EndedBy::Itself, 0));
    let output = keeper.spool().capture(&ended.stdout, 1000).unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), expected);
    assert_eq!(keeper.spool().last_lines(&ended.stderr, 5).unwrap(), "");
    assert!(ended.began <= ended.ended);
}

#[test]
fn a_program_is_found_in_the_path_of_its_own_environment() {
    let (fixture, keeper) = KeeperFixture::started();
    std::fs::create_dir(fixture.path("bin")).unwrap();
    // Without an interpreter line the shell runs it.
    std::fs::write(fixture.path("bin/odd"), "echo \"odd $1\"\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(fixture.path("bin/odd"), executable).unwrap();
    let spec = CommandSpec {
        env: vec![("PATH".into(), "nowhere:bin".into())],
        working_dir: fixture.path(""),
        ..CommandSpec::new(1, ["odd", "one"])
    };
    keeper.run(spec).unwrap();
    let ended = exited(&keeper, 1);
    assert_eq!(ended.end, CommandEnd::Code(0));
    assert_eq!(keeper.spool().capture(&ended.stdout, 99).unwrap(), b"odd one\n");
}

#[test]
fn a_failed_start_reports_what_was_missing() {
    let (fixture, keeper) = KeeperFixture::started();
    std::fs::write(fixture.path("plain"), "").unwrap();
    let no_program = CommandSpec { argv: vec!["surely-not-there".into()], ..fixture.shell(1, "") };
    let not_executable = CommandSpec { argv: vec!["./plain".into()], ..fixture.shell(2, "") };
    let no_folder = CommandSpec { working_dir: fixture.path("nowhere"), ..fixture.shell(3, "") };
    let no_input = CommandSpec { stdin: Some("nowhere".into()), ..fixture.shell(4, "") };
    let nothing = CommandSpec { argv: vec![], ..fixture.shell(5, "") };
    let made = std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status();
    assert!(made.unwrap().success());
    let pipe = CommandSpec { stdin: Some("pipe".into()), ..fixture.shell(6, "") };
    let expected = [
        (pipe, 22, StartRefusal::Stdin, 126),
        (no_program, 2, StartRefusal::Program, 127),
        (not_executable, 13, StartRefusal::Program, 126),
        (no_folder, 2, StartRefusal::WorkingDirectory, 127),
        (no_input, 2, StartRefusal::Stdin, 127),
        (nothing, 22, StartRefusal::Program, 126),
    ];
    for (spec, errno, refusing, status) in expected {
        let id = spec.id;
        keeper.run(spec).unwrap();
        let end = exited(&keeper, id).end;
        assert_eq!(end, CommandEnd::NotStarted(NotStartedCommand { errno, refusing }), "{id}");
        assert_eq!(end.shell_status(), status);
    }
}

#[test]
fn two_hundred_commands_at_width_eight_all_end_once() {
    let (fixture, keeper) = KeeperFixture::started();
    let mut next = 8;
    for id in 0..next {
        keeper.run(fixture.shell(id, &script(id))).unwrap();
    }
    let mut ended = std::collections::BTreeMap::new();
    while ended.len() < 200 {
        match next_event(&keeper) {
            KeeperEvent::Exited(exited) => {
                let wrote = keeper.spool().capture(&exited.stdout, 100).unwrap();
                assert_eq!(String::from_utf8(wrote).unwrap(), format!("{}\n", exited.id));
                assert!(ended.insert(exited.id, exited.end).is_none());
                if next < 200 {
                    keeper.run(fixture.shell(next, &script(next))).unwrap();
                    next += 1;
                }
            }
            KeeperEvent::Began(_) => {}
            other => panic!("{other:?}"),
        }
    }
    for (id, end) in &ended {
        assert_eq!(*end, CommandEnd::Code(i32::try_from(id % 3).unwrap()));
    }
    assert_eq!(fixture.lines("ran"), 200);
    // Eight commands at a time need at most eight pairs of files.
    let pairs = std::fs::read_dir(fixture.spool().join("slots")).unwrap().count();
    assert!(pairs <= 16 + 4, "{pairs} files");
}

fn script(id: u64) -> String {
    format!("echo {id}; echo {id} >> ran; exit {}", id % 3)
}

#[test]
fn a_success_may_leave_a_process_running() {
    let (fixture, keeper) = KeeperFixture::started();
    let script = "sleep 1000 & echo $! > left; echo done";
    keeper.run(fixture.shell(1, script)).unwrap();
    let ended = exited(&keeper, 1);
    let left = fixture.pid("left");
    assert_eq!((ended.end, ended.left), (CommandEnd::Code(0), 1));
    assert!(is_alive(left));
    // Another command fails meanwhile, and the process is not attributed to it.
    keeper.run(fixture.shell(2, "exit 1")).unwrap();
    assert_eq!(exited(&keeper, 2).end, CommandEnd::Code(1));
    assert!(is_alive(left));
    // Its files are not reused.
    let wrote = exited_output(&fixture, &keeper);
    assert_eq!(wrote, b"mine\n");
    kill_and_wait(left);
}

fn exited_output(fixture: &KeeperFixture, keeper: &undaunted_runner::keeper::KeeperClient) -> Vec<u8> {
    keeper.run(fixture.shell(3, "echo mine")).unwrap();
    let ended = exited(keeper, 3);
    keeper.spool().capture(&ended.stdout, 100).unwrap()
}

#[test]
fn the_keeper_exits_when_nothing_is_left_to_do() {
    let (fixture, keeper) = KeeperFixture::started();
    let pid = keeper.pid();
    keeper.run(fixture.shell(1, "exit 3")).unwrap();
    exited(&keeper, 1);
    keeper.disconnect();
    KeeperFixture::eventually("the keeper's end", || (!is_alive(pid)).then_some(()));
    assert!(!fixture.spool().join("socket").exists());
}

#[test]
fn the_keeper_stays_for_its_commands_after_disconnecting() {
    let (fixture, keeper) = KeeperFixture::started();
    let pid = keeper.pid();
    keeper.run(fixture.shell(1, "echo up > up; while [ ! -e go ]; do sleep 0.01; done")).unwrap();
    fixture.line("up");
    keeper.disconnect();
    assert!(is_alive(pid));
    std::fs::write(fixture.path("go"), "").unwrap();
    KeeperFixture::eventually("the keeper's end", || (!is_alive(pid)).then_some(()));
}
