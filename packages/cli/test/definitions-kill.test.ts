/** Definitions lie packed: what was answered is there after `kill -9`, whole and in its versions. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';

const ENTRY = join(import.meta.dirname, '..', 'src', 'main.ts');
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const ROUNDS = 2;
const IN_FLIGHT = 6;
/** Definitions that are answered before the server is killed, in the midst of others. */
const ANSWERED_MIN = 25;

interface Server {
  readonly process: ChildProcess;
  readonly gone: Promise<unknown>;
  readonly client: Client;
}

async function start(dataDir: string): Promise<Server> {
  const args = [ENTRY, 'apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => server.once('exit', resolve));
  await new Promise<void>((resolve) => {
    createInterface({ input: server.stdout }).on('line', (line) => {
      if (line.startsWith('ready in ')) resolve();
    });
  });
  const client = await createKubeClient({ kubeconfig: join(dataDir, 'kubeconfig') });
  return { process: server, gone, client };
}

function schemaOf(index: number): JsonObject {
  const properties: JsonObject = {};
  for (let field = 0; field < 40; field++) {
    const description = `Field ${field} of definition ${index}, in some more words than it needs.`;
    properties[`f${field}`] = { type: 'string', description, default: `d${index}` };
  }
  const spec = { type: 'object', properties };
  return { openAPIV3Schema: { type: 'object', properties: { spec } } };
}

const pluralOf = (index: number): string => `things${index}x`;
const nameOf = (index: number): string => `${pluralOf(index)}.example.com`;

function definitionOf(index: number, versions: readonly string[]): JsonObject {
  const names = { plural: pluralOf(index), kind: `Thing${index}` };
  const stored = versions.at(-1);
  const parts = versions.map((name) => {
    return { name, served: true, storage: name === stored, schema: schemaOf(index) };
  });
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: nameOf(index) },
    spec: { group: 'example.com', scope: 'Cluster', names, versions: parts },
  };
}

const TRIES = 300;

/** Asks until it is so. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries >= TRIES) throw new Error(`not after ${TRIES} tries: ${what}`);
    await sleep(20);
  }
}

/** How far each definition came, as the server answered. */
type Answered = Map<number, 'made' | 'used' | 'versioned'>;

/** Makes one, an object of it, and then a second version that is the stored one. */
async function make({ client }: Server, index: number, answered: Answered): Promise<void> {
  const accept = 'application/json';
  const body = definitionOf(index, ['v1']);
  const made = await client.request({ method: 'POST', path: DEFINITIONS, accept, body });
  if (!made.ok) return;
  answered.set(index, 'made');
  const apiVersion = 'example.com/v1';
  const thing = { apiVersion, kind: `Thing${index}`, metadata: { name: 'one' }, spec: {} };
  const path = `/apis/${apiVersion}/${pluralOf(index)}`;
  await until(`${pluralOf(index)} to be served`, async () => {
    return (await client.request({ method: 'POST', path, accept, body: thing })).ok;
  });
  answered.set(index, 'used');
  const { spec } = definitionOf(index, ['v1', 'v2']);
  const changed = await client.request({
    method: 'PATCH',
    path: `${DEFINITIONS}/${nameOf(index)}`,
    accept,
    contentType: 'application/merge-patch+json',
    body: { spec: spec ?? null },
  });
  if (changed.ok) answered.set(index, 'versioned');
}

async function get({ client }: Server, path: string): Promise<JsonObject> {
  const answer = await client.request({ method: 'GET', path, accept: 'application/json' });
  assert(answer.ok, `${path}: ${answer.ok ? '' : answer.status.message}`);
  return answer.object;
}

async function check(server: Server, answered: Answered): Promise<void> {
  for (const [index, state] of answered) {
    const path = `${DEFINITIONS}/${nameOf(index)}`;
    const definition = await get(server, path);
    const versions = listAt(definition, 'spec', 'versions');
    const names = versions.map((one) => stringAt(one, 'name'));
    // what was not answered may have been written all the same
    if (state === 'versioned' || names.length > 1) assert.deepEqual(names, ['v1', 'v2']);
    for (const one of versions) assert.deepEqual(objectAt(one, 'schema'), schemaOf(index));
    await until(`${nameOf(index)} to be established`, async () => {
      const conditions = listAt(await get(server, path), 'status', 'conditions');
      const isTrue = conditions.filter((one) => stringAt(one, 'status') === 'True');
      return isTrue.some((one) => stringAt(one, 'type') === 'Established');
    });
    if (state === 'made') continue;
    for (const version of names) {
      const thing = await get(server, `/apis/example.com/${version}/${pluralOf(index)}/one`);
      assert.equal(stringAt(thing, 'spec', 'f7'), `d${index}`);
      assert.equal(stringAt(thing, 'apiVersion'), `example.com/${version}`);
    }
  }
}

test('definitions, their versions and objects are there after the server was killed', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-kill-'));
  const answered: Answered = new Map();
  let next = 0;
  const started: ChildProcess[] = [];
  const open = async (): Promise<Server> => {
    const server = await start(dataDir);
    started.push(server.process);
    await check(server, answered);
    return server;
  };
  try {
    for (let round = 1; round <= ROUNDS; round++) {
      const server = await open();
      const work = async (): Promise<void> => {
        while (answered.size < round * ANSWERED_MIN) await make(server, next++, answered);
        server.process.kill('SIGKILL');
      };
      // what is on its way when the server dies is not answered
      const works = Array.from({ length: IN_FLIGHT }, () => work().catch(() => undefined));
      await server.gone;
      server.client.close();
      void works;
    }
    const server = await open();
    server.client.close();
    server.process.kill('SIGTERM');
    await server.gone;
    assert.ok([...answered.values()].includes('versioned'));
  } finally {
    started.at(-1)?.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
});
