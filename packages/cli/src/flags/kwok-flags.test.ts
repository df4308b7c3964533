import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { addKwokFlags, kwokWarning, managedConflict } from './kwok-flags.ts';

test("kwok's flags without effect here are taken, and named in one warning", () => {
  const warningOf = (...args: readonly string[]): string => {
    const command = addKwokFlags(new Command()).exitOverride();
    command.parse(args, { from: 'user' });
    return kwokWarning(command);
  };
  assert.equal(warningOf(), '');
  const given = ['-v', '-4', '--master=https://a', '--tracing-endpoint', 'b:4317'];
  const what = 'flags without effect here';
  assert.equal(warningOf(...given), `${what}: --v, --master, --tracing-endpoint`);
  assert.equal(warningOf('--v=DEBUG'), `${what}: --v`);
});

test('flags that say whose nodes are simulated exclude each other as in kwok', () => {
  const none = {
    ...{ manageSingleNode: '', manageNodesWithLabelSelector: '' },
    manageNodesWithAnnotationSelector: '',
  };
  const label = { manageNodesWithLabelSelector: 'a=b' };
  assert.equal(managedConflict(none), '');
  assert.equal(managedConflict({ ...none, manageAllNodes: false, ...label }), '');
  assert.match(managedConflict({ ...none, manageAllNodes: true, ...label }), /all-nodes is conf/);
  const single = { ...none, manageSingleNode: 'n' };
  assert.equal(managedConflict(single), '');
  assert.match(managedConflict({ ...single, manageAllNodes: true }), /with --manage-all-nodes$/);
  assert.match(managedConflict({ ...single, ...label }), /single-node is .* --manage-nodes-with-/);
});
