import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { crowdLoad, crowdText, MEASURED, serversFor, type Crowd } from './crowd.ts';

const MILLION: Crowd = { nodes: 1_000_000, servers: 8, connections: 2, watches: 9, cores: 1 };

test('a million nodes on eight servers, as by hand', () => {
  const measured = {
    ...{ processBytesPerConnection: 1000, kernelBytesPerConnection: 100, processBytesPerWatch: 10 },
    ...{ handshakeMs: 1, ticketMs: 0.5, watchStartMs: 0.1 },
  };
  const load = crowdLoad(MILLION, measured);
  assert.deepEqual([load.connections, load.watches], [250_000, 1_125_000]);
  // 2,000,000 / 7, and the files of the process
  assert.deepEqual([load.lost.connections, load.descriptors], [285_715, 286_715]);
  assert.equal(load.processBytes, 250_000 * (1000 + 4.5 * 10));
  assert.equal(load.kernelBytes, 25_000_000);
  assert.equal(load.returnSeconds, 362.5);
  assert.equal(load.returnTicketSeconds, 237.5);
  assert.ok(Math.abs(load.lost.returnSeconds - 35_715 * 0.001_45) < 1e-6);
  assert.match(crowdText(MILLION, load), /^connections +250,000 each; 285,715 without one$/m);
});

test('one server has all, and all come back to it', () => {
  const load = crowdLoad({ ...MILLION, servers: 1 }, MEASURED);
  assert.equal(load.lost.connections, 2_000_000);
  assert.equal(load.lost.returnSeconds, load.returnSeconds);
});

test('the number of servers that is named is enough, and one less is not', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 16_000_000 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 0, max: 50 }),
      fc.double({ min: 0.05, max: 1000, noNaN: true }),
      (nodes, connections, watches, secondsMax) => {
        const crowd = { nodes, connections, watches, servers: 2, cores: 1 };
        const servers = serversFor(crowd, MEASURED, secondsMax);
        const at = (count: number): number =>
          crowdLoad({ ...crowd, servers: count }, MEASURED).lost.returnSeconds;
        assert.ok(at(servers) <= secondsMax, `${servers}: ${at(servers)}`);
        if (servers > 2) assert.ok(at(servers - 1) > secondsMax, `${servers} are too many`);
      },
    ),
  );
});
