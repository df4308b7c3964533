import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dryRunJson, dryRunText } from './dry-run.ts';
import type { UpOptions } from './plan.ts';

const options: UpOptions = {
  nodes: 1000,
  pods: 5,
  dataDir: '/srv/my cluster',
  ephemeral: false,
  securePort: 6444,
  kubeletPort: 0,
  kubeconfig: undefined,
  mergeKubeconfig: false,
  listenClientUrls: undefined,
  durability: undefined,
  etcdServers: undefined,
  stages: [],
  components: ['apiserver', 'scheduler'],
  exitWhen: undefined,
  output: 'text',
  logLevel: 'info',
  logFormat: 'text',
};
const facts = { memoryBytes: 2 ** 34, hasData: true };

test('a dry run says where, how large, and what an operator would type', () => {
  const text = dryRunText(options, facts);
  assert.match(text, /cluster {7}https:\/\/127\.0\.0\.1:6444/);
  assert.match(text, /data {10}\/srv\/my cluster \(has a cluster\)/);
  assert.match(text, /^ {2}megaplane apiserver --data-dir '\/srv\/my cluster' --secure-port 6444/m);
  assert.match(text, /^ {2}megaplane scheduler /m);
  assert(!/megaplane (nodes|controllers)/.test(text));
  assert.match(dryRunText({ ...options, securePort: 0 }, facts), /127\.0\.0\.1 at a free port/);
  assert.match(dryRunText({ ...options, ephemeral: true }, facts), /a temporary directory/);
});

test('for programs it is one object', () => {
  const found = JSON.parse(dryRunJson(options, facts)) as {
    readonly processes: readonly { readonly command: readonly string[] }[];
  };
  assert.equal(found.processes.length, 2);
  assert.deepEqual(found.processes[0]?.command.slice(0, 2), ['megaplane', 'apiserver']);
});
