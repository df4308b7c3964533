import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import type { GoMap } from './go-values.ts';
import { stageFunctions, type StageWorld } from './stage-functions.ts';
import { TemplateError } from './template-lexer.ts';
import { Template } from './template-run.ts';

const WORLD: StageWorld = {
  nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5, 60),
  random: () => 0.5,
  version: 'v1.36.1',
  nodePort: 10_250,
  nodeName: 'host',
  nodeIp: '10.0.0.7',
  nodeAddresses: (node) => [`ip of ${node}`],
  podAddresses: ({ node, name, isHostNetwork }) => [`ip of ${name} on ${node} ${isHostNetwork}`],
  anyAddress: () => 'any ip',
};
const FUNCTIONS = stageFunctions(WORLD);

/** Recorded from Go's text/template with sprig v3.3: a template and its text, null for an error. */
interface Recorded {
  readonly data: GoMap;
  readonly cases: readonly (readonly [template: string, text: string | null])[];
}

function render(template: string, data: GoMap): string {
  return new Template(template.trim(), FUNCTIONS).render(data);
}

test('templates give what Go gives for them', () => {
  const file = new URL('../../test/go-templates.json', import.meta.url);
  const { data, cases } = JSON.parse(readFileSync(file, 'utf8')) as Recorded;
  assert(cases.length > 100);
  for (const [template, text] of cases) {
    const own = structuredClone(data);
    if (text === null) assert.throws(() => render(template, own), TemplateError, template);
    else assert.equal(render(template, own), text, template);
  }
});

test('an error names its line and the construct', () => {
  assert.throws(() => render('a\n{{ nosuch .x }}', {}), /_:2: function "nosuch" not defined/);
  assert.throws(() => render('a\n\n{{ if .x }}', {}), /unexpected EOF/);
  assert.throws(() => render('{{ .x.y }}', { x: 'text' }), /can't evaluate field y in type string/);
});

test('numbers are read as Go reads them', () => {
  const whole = '{{ 010 }} {{ 0x1F }} {{ 1_000 }} {{ 0b1_0 }} {{ 1e3 }} {{ 09. }}';
  assert.equal(render(whole, {}), '8 31 1000 2 1000 9');
  assert.equal(render('{{ -9223372036854775808 }}', {}), '-9223372036854775808');
  for (const text of ['08', '1__0', '0x_', '9223372036854775808', '1e999', '0_8']) {
    const what = /_:1: (integer overflow|illegal number syntax): "/;
    assert.throws(() => render(`{{ ${text} }}`, {}), what, text);
  }
});

test('the functions of stages tell of the node, the pod and the time', () => {
  const pod = { spec: { nodeName: 'n1' }, metadata: { name: 'p' } };
  assert.equal(render('{{ Now }} {{ Version }}', pod), '2026-01-02T03:04:05.06Z v1.36.1');
  assert.equal(render('{{ NodeIPWith .spec.nodeName }}', pod), 'ip of n1');
  assert.equal(render('{{ NodeName }} {{ NodePort }} {{ NodeIP }}', pod), 'host 10250 10.0.0.7');
  const call = 'PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) "" .metadata.name ""';
  assert.equal(render(`{{ ${call} }}`, pod), 'ip of p on n1 false');
  assert.equal(render('a:{{ YAML .spec 1 }}', pod), 'a:\n  nodeName: n1\n  ');
  assert.equal(render('{{ range NodeConditions }}{{ .type }} {{ end }}', pod).split(' ').length, 6);
});

test('a template comes to an end, or is ended', () => {
  const calls = '{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}';
  assert.throws(() => render(calls, {}), /exceeded maximum template depth/);
  const loops = '{{ range until 90000 }}{{ range until 90000 }}x{{ end }}{{ end }}';
  assert.throws(() => render(loops, {}), TemplateError);
  assert.throws(() => render(`${'('.repeat(500)}`.replace(/^/, '{{ '), {}), TemplateError);
});

test('no text makes the parser do anything but parse or refuse', () => {
  const piece = fc.constantFrom(
    ...['{{', '}}', ' ', '.a', '$x', ':=', '=', '|', '(', ')', '"s"', 'if', 'end', 'range'],
    ...['else', 'define "d"', 'template "d"', '1', 'nil', 'len', '-', ',', '/*', '*/', 'x'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
      try {
        render(pieces.join(''), { a: { b: [1, 2] } });
      } catch (error) {
        assert(error instanceof TemplateError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

test('a template that changes what it is applied to changes a copy', () => {
  const pod = { metadata: { labels: { a: 'b' } } };
  const source = '{{ $_ := set .metadata.labels "x" "y" }}{{ .metadata.labels }}';
  assert.equal(render(source, pod), 'map[a:b x:y]');
  assert.deepEqual(pod, { metadata: { labels: { a: 'b' } } });
});

test('a map that was put into itself ends the template, not the program', () => {
  const circle = '{{ $m := dict }}{{ $_ := set $m "a" $m }}';
  for (const use of ['$m', 'toJson $m', 'YAML $m', 'deepCopy $m', 'merge (dict) $m | len']) {
    const source = `${circle}{{ ${use} }}`;
    if (use.startsWith('merge')) assert.equal(render(source, {}), '1');
    else assert.throws(() => render(source, {}), TemplateError, use);
  }
});
