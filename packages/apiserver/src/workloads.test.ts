import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from './admission/admitting.sim.ts';

const SETS = '/apis/apps/v1/namespaces/n/daemonsets';
const GENERATION = 'deprecated.daemonset.template.generation';

test('a daemon set counts its templates from the number that it is made with, or from one', () => {
  const { expect } = admittingModel();
  const labels = { a: 'b' };
  const set = (name: string, sent: string | null, image: string): object => ({
    metadata: { name, annotations: sent === null ? {} : { [GENERATION]: sent } },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image }] } },
    },
  });
  const counted = (text: string): string | undefined => {
    const { metadata } = JSON.parse(text) as { metadata: { annotations: Record<string, string> } };
    return metadata.annotations[GENERATION];
  };
  const made = (name: string, sent: string | null): string | undefined =>
    counted(expect(201, 'POST', SETS, set(name, sent, 'i')).text);
  assert.equal(made('x', '5'), '5');
  assert.equal(made('y', '0'), '1');
  assert.equal(made('z', null), '1');
  assert.equal(counted(expect(200, 'PUT', `${SETS}/x`, set('x', '9', 'i')).text), '5');
  assert.equal(counted(expect(200, 'PUT', `${SETS}/x`, set('x', null, 'j')).text), '6');
});
