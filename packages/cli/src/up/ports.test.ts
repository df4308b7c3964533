import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { test } from 'node:test';
import { chosenPort, freePortFrom } from './ports.ts';

async function taken(): Promise<[Server, number]> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return [server, (server.address() as AddressInfo).port];
}

test('a default that is taken makes way and says so; a port asked for is refused', async () => {
  const [server, port] = await taken();
  try {
    const said: string[] = [];
    const say = (text: string): void => void said.push(text);
    const found = await chosenPort('--secure-port', port, true, say);
    assert(found > port || found === 0);
    assert.match(said.join(), new RegExp(`^--secure-port: port ${port} is taken, so .* is used`));
    const asked = chosenPort('--secure-port', port, false, say);
    await assert.rejects(
      asked,
      /^Error: --secure-port: cannot .* listens there; --secure-port \d+ would/,
    );
    assert.equal(said.length, 1);
    assert.equal(await chosenPort('--secure-port', 0, false, say), 0);
  } finally {
    server.close();
  }
});

test('the search for a port ends at the last one', async () => {
  const [server, port] = await taken();
  server.close();
  assert.equal(await freePortFrom(port), port);
  assert([0, 65_535].includes(await freePortFrom(65_535)));
  assert.equal(await freePortFrom(65_536), 0);
});
