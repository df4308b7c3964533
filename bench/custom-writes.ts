/**
 * Creates of custom resources of 2 KB, with a schema of 200 nodes and five CEL rules, over TLS:
 *
 *     node bench/custom-writes.ts --objects 20000 --runs 3
 *
 * The server has one core, the load the other. Beside it the same objects without a schema.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { widgetDefinition, widgetOf } from '@megaplane/machinery/custom/widgets.sim';
import { flagsOf } from './flags.ts';
import * as load from './apiserver-load.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  objects: { type: 'string', default: '20000' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});
const OBJECTS = Number(values.objects);
const RUNS = Number(values.runs);
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const ESTABLISHED_MS = 500;
const TYPE = 'application/json';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

function openDefinition(): string {
  const text = JSON.stringify(widgetDefinition()).replaceAll('example.com', 'open.example.com');
  const definition = JSON.parse(text) as { spec: { versions: { schema: object }[] } };
  for (const version of definition.spec.versions) version.schema = { openAPIV3Schema: open };
  return JSON.stringify(definition);
}

async function creates(many: readonly Client[], pid: number, group: string): Promise<load.Rate> {
  const path = `/apis/${group}/v1/namespaces/default/widgets`;
  const bodies = Array.from({ length: OBJECTS }, (_, index) =>
    JSON.stringify({ ...widgetOf(index), apiVersion: `${group}/v1` }),
  );
  const shotOf = (index: number): load.Shot => {
    return { method: 'POST', path, type: TYPE, body: bodies[index] ?? null };
  };
  return load.rateOf([pid], OBJECTS, () => load.shoot(many, OBJECTS, shotOf));
}

async function run(): Promise<readonly [declared: load.Rate, open: load.Rate]> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-bench-custom-'));
  const args = ['apiserver', '--data-dir', dir, '--secure-port', '0'];
  const server = await harness.startMegaplane(args, 0);
  try {
    const many = await load.openClients(join(dir, 'kubeconfig'), 4, 1, 16);
    const bodies = [JSON.stringify(widgetDefinition()), openDefinition()];
    await load.shoot(many, bodies.length, (index) => {
      return { method: 'POST', path: DEFINITIONS, type: TYPE, body: bodies[index] ?? null };
    });
    await sleep(ESTABLISHED_MS);
    const declared = await creates(many, server.pid, 'example.com');
    const plain = await creates(many, server.pid, 'open.example.com');
    for (const client of many) client.close();
    return [declared, plain];
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true });
  }
}

harness.pinSelf(1);
const found: (readonly [load.Rate, load.Rate])[] = [];
for (let i = 0; i < RUNS; i++) found.push(await run());
const report = ['with schema and rules', 'without a schema'].map((title, which) => ({
  title,
  perCpuSecond: harness.median(found.map((rates) => rates[which]?.perCpuSecond ?? NaN)),
  perSecond: harness.median(found.map((rates) => rates[which]?.perSecond ?? NaN)),
}));
console.log(harness.machine());
for (const { title, perCpuSecond, perSecond } of report) {
  console.log(`${title}: ${perCpuSecond.toFixed(0)} /CPU s, ${perSecond.toFixed(0)} /s`);
}
harness.writeResults(values.output, { report });
