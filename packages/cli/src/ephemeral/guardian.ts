// shell: a process that outlives this one
/**
 * What cleans up after a process that was killed. A shell waits for the end of its standard input,
 * which comes when its owner is gone, however it went; then it ends the command, waits for the
 * cluster's processes, whose own standard input ends at the same time, and removes the directory.
 * It takes no signals of a terminal and stands in a group of its own.
 */
import { guarded } from '@megaplane/base/deferred';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Tenths of a second: a command that was asked to end is killed after this. */
const COMMAND_TENTHS_MAX = 50;
/** The same of the cluster's processes, which stop by themselves. */
const PROCESS_TENTHS_MAX = 150;

const SCRIPT = `trap '' INT TERM HUP QUIT
dir=$1; command=; pids=
while read -r word value; do
  case $word in
    process) pids="$pids $value" ;;
    command) command=$value ;;
    done) exit 0 ;;
  esac
done
await() {
  left=$2
  while kill -0 "$1" 2>/dev/null; do
    [ "$left" -gt 0 ] || { kill -KILL "$1" 2>/dev/null; return; }
    left=$((left - 1)); sleep 0.1
  done
}
if [ -n "$command" ]; then
  kill -TERM "$command" 2>/dev/null
  await "$command" ${COMMAND_TENTHS_MAX}
fi
for pid in $pids; do await "$pid" ${PROCESS_TENTHS_MAX}; done
rm -rf "$dir"
`;

/** The line to the process that cleans up. */
export interface Guardian {
  /** A process of the cluster. */
  knowProcess(pid: number): void;
  /** The command that runs beside it; null once it has ended. */
  knowCommand(pid: number | null): void;
  /** All is cleaned up already: it ends and does nothing. */
  dismiss(): Promise<void>;
}

/** Starts it for `dir`. It keeps this process from nothing. */
export function startGuardian(dir: string): Guardian {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'megaplane-guardian', dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
  });
  child.unref();
  // Without it a killed process leaves its directory behind; nothing else depends on it.
  child.on(
    'error',
    guarded(() => undefined),
  );
  const { stdin } = child;
  stdin.on(
    'error',
    guarded(() => undefined),
  );
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  return {
    knowProcess: (pid) => void stdin.write(`process ${pid}\n`),
    knowCommand: (pid) => void stdin.write(`command ${pid ?? ''}\n`),
    dismiss: async () => {
      if (child.pid === undefined || child.exitCode !== null) return;
      child.ref();
      const exited = once(child, 'exit');
      stdin.end('done\n');
      await exited;
    },
  };
}
