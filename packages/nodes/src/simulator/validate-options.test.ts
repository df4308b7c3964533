import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateOptions, type ValidatedOptions } from './validate-options.ts';

const FINE: ValidatedOptions = {
  create: 0,
  ...{ cidr: '10.0.0.0/9', shard: '', fidelity: 'lean', kubeletCalls: '', labelSelector: '' },
  ...{ annotationSelector: '', disregardAnnotations: '', disregardLabels: '', enableCrds: [] },
  endpoint: { port: 0, hostname: '', nodeIp: '' },
  serverAddress: '[::1]:0',
};

function says(given: Partial<ValidatedOptions>, what: RegExp): void {
  assert.throws(() => validateOptions({ ...FINE, ...given }), what);
}

test('what is wrong with a flag is told by its name, whatever the server does', () => {
  validateOptions(FINE);
  validateOptions({ ...FINE, shard: 'auto', fidelity: 'kubelet', kubeletCalls: '-events' });
  says({ cidr: '10.0.0.0/33' }, /^Error: --cidr: 10/);
  says({ shard: '5/4' }, /^Error: --shard: 5\/4/);
  says({ kubeletCalls: 'token' }, /^Error: --kubelet-calls: only with --fidelity kubelet/);
  says({ fidelity: 'kubelet', kubeletCalls: 'x' }, /^Error: --kubelet-calls: x is none of/);
  says({ labelSelector: 'a=b=c' }, /^Error: --manage-nodes-with-label-selector: /);
  says({ annotationSelector: '!' }, /^Error: --manage-nodes-with-annotation-selector: /);
  says({ disregardLabels: ',,=' }, /^Error: --disregard-status-with-label-selector: /);
  says({ disregardAnnotations: 'a in' }, /^Error: --disregard-status-with-annotation-selector: /);
  says({ enableCrds: ['Stage', 'Foo'] }, /^Error: --enable-crds: Foo is none of Stage, Logs/);
  says({ endpoint: { port: 0, hostname: '', nodeIp: '1.2.3' } }, /^Error: --node-ip: 1.2.3/);
  says({ serverAddress: '10250' }, /^Error: --server-address: 10250 is not host:port/);
  says({ serverAddress: ':99999' }, /^Error: --server-address: :99999/);
});

test('a plan has room for so many nodes as it has networks', () => {
  validateOptions({ ...FINE, cidr: 'plan:fd00:10::/76/96', create: 1_000_000 });
  says({ cidr: 'plan:fd00:10::/92/96', create: 17 }, /has networks for 16 nodes, not for 17/);
  says({ cidr: 'plan:fd00:10::/96/92' }, /--cidr: plan:fd00:10::\/96\/92 is not/);
});
