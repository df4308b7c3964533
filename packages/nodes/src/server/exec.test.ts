import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as turn } from 'node:timers/promises';
import { runExec } from './exec.ts';
import type { RemoteStreams } from './remote-streams.ts';

const LOCAL = { workDir: '', environment: {}, user: null, group: null };
const WANTED = { stdin: true, stdout: true, stderr: true, tty: false };

test('a client that leaves ends what its command has started, too', async () => {
  // the inner shell listens: its socket refuses once it is gone
  const listen = `require('net').createServer().listen(0, function () {
    console.log(this.address().port);
  }), setTimeout(process.exit, 60_000)`;
  const script = `"$0" -e "$1" & wait`;
  let shown: (text: string) => void = () => undefined;
  const port = new Promise<string>((resolve) => (shown = resolve));
  const streams: RemoteStreams = {
    ...{ begin() {}, onStdin() {}, onStdinEnd() {}, onResize() {}, onDrain() {}, onClose() {} },
    ...{ pause() {}, resume() {}, finish() {} },
    write(_, bytes) {
      shown(bytes.toString());
      return true;
    },
  };
  runExec(LOCAL, ['sh', '-c', script, process.execPath, listen], WANTED, streams);
  const place = { port: Number(await port), host: 'localhost' };
  assert.equal(await refusalOf(place), undefined);
  streams.onClose();
  while ((await refusalOf(place)) !== 'ECONNREFUSED') await turn(10);
});

test('a program that ends leaves no command behind', async () => {
  const file = new URL('./process-groups.ts', import.meta.url).href;
  const program = `
    import { spawn } from 'node:child_process';
    import { keepGroup } from ${JSON.stringify(file)};
    const options = { detached: true, stdio: 'inherit' };
    const child = spawn('sh', ['-c', 'echo on; sleep 20; echo left'], options);
    keepGroup(child);
    child.once('spawn', () => setTimeout(process.exit, 200));`;
  const args = ['--input-type=module-typescript', '-e', program];
  // it returns when nobody has its output open any more
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(stdout.replace('on\n', ''), '');
});

/** Why nobody can connect there; undefined where somebody can. */
async function refusalOf(place: {
  readonly port: number;
  readonly host: string;
}): Promise<unknown> {
  const socket = connect(place);
  try {
    await once(socket, 'connect');
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  } finally {
    socket.destroy();
  }
}
