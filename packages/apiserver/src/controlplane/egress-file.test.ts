import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { checkEgressFile } from './egress-file.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-egress-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const HEAD = 'apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n';

function check(text: string): void {
  const file = join(dir, 'egress.yaml');
  writeFileSync(file, text);
  checkEgressFile(file);
}

test('a file that asks for direct connections is taken; a proxy is refused', () => {
  const selection = (name: string, protocol: string): string =>
    `${HEAD}egressSelections:\n- name: ${name}\n  connection: {proxyProtocol: ${protocol}}\n`;
  assert.doesNotThrow(() => check(selection('cluster', 'Direct')));
  assert.doesNotThrow(() => checkEgressFile(undefined));
  assert.throws(() => check(selection('etcd', 'HTTPConnect')), /etcd: proxyProtocol HTTPConnect/);
  assert.throws(() => check(selection('moon', 'Direct')), /moon is none of/);
  assert.throws(() => check('kind: List\n'), /an EgressSelectorConfiguration .* is needed/);
  assert.throws(
    () => checkEgressFile(join(dir, 'absent')),
    /--egress-selector-config-file: .*ENOENT/,
  );
});
