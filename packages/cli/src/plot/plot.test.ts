import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { barSvg, lineSvg, writePicture } from './plot.ts';

const PLOT = {
  title: 'Pods & <nodes>',
  xTitle: 'seconds',
  yTitle: 'per second',
  yFormat: '~s',
  lines: [
    { label: 'created', points: [[0, 1] as const, [1, 20_000] as const, [2, 10_000] as const] },
    { label: 'bound', points: [[0, 0] as const, [1, 5000] as const, [2, 25_000] as const] },
  ],
  marks: [{ x: 1, label: 'first pod' }],
};

test('lines become a picture with their names, marks and no address of elsewhere', async () => {
  const svg = await lineSvg(PLOT);
  assert.match(svg, /^<svg /);
  for (const word of ['Pods &amp; &lt;nodes&gt;', 'created', 'bound', 'first pod', '20k']) {
    assert(svg.includes(word), word);
  }
  assert.doesNotMatch(svg.replaceAll('http://www.w3.org/', ''), /https?:/);
});

test('a picture is written as SVG or as PNG', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-plot-'));
  try {
    const bars = [
      { label: 'ours', value: 2 },
      { label: 'theirs', value: 3 },
    ];
    const svg = await barSvg({ title: 'Puts', groups: [{ label: 'per second', bars }] });
    await writePicture(join(dir, 'a.svg'), svg);
    await writePicture(join(dir, 'a.png'), svg);
    assert.equal(readFileSync(join(dir, 'a.svg'), 'utf8'), svg);
    assert.equal(readFileSync(join(dir, 'a.png')).toString('latin1', 1, 4), 'PNG');
  } finally {
    rmSync(dir, { recursive: true });
  }
});
