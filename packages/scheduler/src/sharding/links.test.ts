import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { createProfile } from '../framework/runtime/profile.ts';
import { KeptLink } from './kept-link.ts';
import { acceptChildren, joinAsRelay, joinAsShard, type Children, type Link } from './links.ts';
import { JOIN_PATH, encodeUp } from './protocol/frames.ts';
import { encodeRound } from './protocol/round-codec.ts';
import type { Reply, Round } from './protocol/rounds.ts';
import { Share } from './share.ts';

const TERMS = { version: '1', configHash: 'abc' };
const PROFILES = new Map([['default-scheduler', createProfile()]]);
const ROUND: Round = { kind: 'prescore', among: null };

/** A port, and what can be waited for at it. */
async function open(): Promise<Children & { readonly changed: () => Promise<void> }> {
  let waiting: () => void = () => {};
  const onChange = (): void => waiting();
  const children = await acceptChildren({ host: '127.0.0.1', port: 0, terms: TERMS, onChange });
  const changed = (): Promise<void> => new Promise((resolve) => (waiting = resolve));
  return { ...children, changed };
}

/** Joins; resolves with why it was refused. */
function refused(port: number, hello: object): Promise<string> {
  return new Promise((resolve) => {
    const whole = { ...TERMS, members: ['s'], ...hello };
    const options = { host: '127.0.0.1', port, hello: whole, onEnd: resolve };
    joinAsShard(options, new Share('s', PROFILES));
  });
}

function shard(port: number, name: string): Link {
  const hello = { ...TERMS, members: [name] };
  const options = { host: '127.0.0.1', port, hello, onEnd: () => {} };
  return joinAsShard(options, new Share(name, PROFILES));
}

function ask({ gathering }: Children, number: number): Promise<Reply> {
  const frame = { to: '', state: null, round: encodeRound(ROUND), number };
  return new Promise((resolve) => gathering.ask(frame, resolve));
}

/** The end of a stream on which these bytes came first. */
function sent(port: number, frames: readonly Uint8Array[]): Promise<string> {
  return new Promise((resolve) => {
    const connection = connect({ host: '127.0.0.1', port });
    const call = grpcClient(connection).open(JOIN_PATH, {
      onMessage: () => {},
      onStatus: (_call, { message }) => {
        connection.destroy();
        resolve(message);
      },
    });
    connection.onOpen = (): void => frames.forEach((frame) => call.send(frame));
  });
}

test('who is of another version or configuration, or named as another, is told so', async () => {
  const root = await open();
  const { port } = root.address;
  try {
    const joined = root.changed();
    const link = shard(port, 's');
    await joined;
    assert.match(await refused(port, { version: '2' }), /version 2 joins a root of version 1/);
    assert.match(await refused(port, { configHash: 'x' }), /its hash is x, the root's is abc/);
    assert.match(await refused(port, {}), /a shard named s is here already/);
    assert.match(await refused(port, { members: [] }), /does not say who comes/);
    assert.deepEqual(root.gathering.members, ['s']);
    link.close();
  } finally {
    await root.close();
  }
});

test('bytes that are no frames end their own stream and nothing else', async () => {
  const root = await open();
  const { port } = root.address;
  try {
    const joined = root.changed();
    const link = shard(port, 's');
    await joined;
    assert.match(await sent(port, [Buffer.from('garbage')]), /malformed message|who comes/);
    const hello = encodeUp({ hello: { ...TERMS, members: ['t'] }, number: 0, reply: null });
    assert.match(await sent(port, [hello, Buffer.from([0xff])]), /malformed message/);
    assert.deepEqual(root.gathering.members, ['s']);
    assert.match((await ask(root, 1)).trouble, /knows of no try/);
    link.close();
  } finally {
    await root.close();
  }
});

test('a round fails, and is over, when a shard leaves below a relay', async () => {
  const root = await open();
  const relay = await open();
  try {
    const [first, second] = [relay.changed(), root.changed()];
    const link = shard(relay.address.port, 's');
    await first;
    const hello = { ...TERMS, members: ['s'] };
    const up = { host: '127.0.0.1', port: root.address.port, hello, onEnd: () => {} };
    const relayLink = joinAsRelay(up, relay.gathering);
    await second;
    assert.match((await ask(root, 1)).trouble, /knows of no try/);
    const left = relay.changed();
    link.close();
    await left;
    assert.match((await ask(root, 2)).trouble, /there are no shards/);
    const gone = root.changed();
    const waiting = ask(root, 3);
    relayLink.close();
    await gone;
    assert.notEqual((await waiting).trouble, '');
    assert.equal(root.gathering.size, 0);
  } finally {
    await relay.close();
    await root.close();
  }
});

test('a relay whose shards have gone keeps no round of the others from its end', async () => {
  const root = await open();
  const relay = await open();
  try {
    const [first, second] = [relay.changed(), root.changed()];
    const below = shard(relay.address.port, 's');
    await first;
    const hello = { ...TERMS, members: ['s'] };
    const up = { host: '127.0.0.1', port: root.address.port, hello, onEnd: () => {} };
    const relayLink = joinAsRelay(up, relay.gathering);
    await second;
    const third = root.changed();
    const direct = shard(root.address.port, 't');
    await third;
    const [left, told] = [relay.changed(), root.changed()];
    below.close();
    await left;
    relayLink.update({ ...hello, members: [] });
    await told;
    assert.deepEqual(root.gathering.members, ['t']);
    assert.match((await ask(root, 1)).trouble, /knows of no try/);
    direct.close();
    relayLink.close();
  } finally {
    await relay.close();
    await root.close();
  }
});

test('a shard that comes while its relay joins is known to the root', async () => {
  const root = await open();
  const relay = await open();
  try {
    const joined = root.changed();
    const hello = { ...TERMS, members: ['s'] };
    const up = { host: '127.0.0.1', port: root.address.port, hello, onEnd: () => {} };
    const link = joinAsRelay(up, relay.gathering);
    link.update({ ...hello, members: ['s', 't'] });
    await joined;
    // its answer comes behind all that it has said of itself
    assert.match((await ask(root, 1)).trouble, /there are no shards/);
    assert.deepEqual(root.gathering.members, ['s', 't']);
    link.close();
  } finally {
    await relay.close();
    await root.close();
  }
});

test('a relay without shards asks nobody to take it in until it has some', () => {
  let members: readonly string[] = [];
  const asked: (readonly string[])[] = [];
  const link = new KeptLink({
    parents: [{ host: '127.0.0.1', port: 1 }],
    hello: () => ({ ...TERMS, members }),
    open: ({ hello }) => {
      asked.push(hello.members);
      return { update: () => {}, close: () => {} };
    },
    patienceMs: 1000,
    onTrouble: () => {},
  });
  link.update();
  assert.deepEqual(asked, []);
  members = ['s'];
  link.update();
  link.update();
  assert.deepEqual(asked, [['s']]);
  link.close();
});
