import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from '../request/yaml/yaml-body.ts';
import { yamlText } from '../request/printed-text.ts';
import { Rig } from '../testing/rig.sim.ts';

const MAPS = '/api/v1/namespaces/a/configmaps';

test('lists for people are printed piece by piece as they would be as a whole', () => {
  const rig = new Rig();
  for (const count of [0, 1, 3]) {
    for (let index = 0; index < count; index++) {
      const data = { k: 'one\ntwo\n', l: '', m: `${'long '.repeat(40)}: #`, n: 'yes' };
      rig.ask('POST', MAPS, { metadata: { name: `m-${count}-${index}` }, data });
    }
    const whole = JSON.parse(rig.ask('GET', MAPS).text) as Parameters<typeof yamlText>[0];
    const pretty = rig.ask('GET', `${MAPS}?pretty=1`).text;
    assert.equal(pretty, JSON.stringify(JSON.parse(pretty), null, 2));
    assert.deepEqual(JSON.parse(pretty), whole);
    const yaml = rig.ask('GET', MAPS, undefined, { accept: 'application/yaml' }).text;
    assert.equal(yaml, yamlText(whole));
    assert.deepEqual(parseYaml(yaml), { value: whole });
  }
});
