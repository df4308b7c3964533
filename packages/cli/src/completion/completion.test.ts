import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { makeProgram } from '../program.ts';
import { completionScript } from './scripts.ts';
import { commandTable } from './table.ts';

const program = makeProgram('0.0.0', () => {});
const commands = commandTable(program);

function lacks(shell: string): string | false {
  const isThere = spawnSync(shell, ['-c', 'true']).status === 0;
  return isThere ? false : `no ${shell}: apt-get install ${shell}`;
}

/** What a shell says to a script that it sourced, and then `ask`. */
function said(shell: 'bash' | 'zsh' | 'fish', ask: string): string[] {
  const script = completionScript(shell, 'megaplane', commands);
  const before = shell === 'zsh' ? 'compdef() { :; }\n' : '';
  const result = spawnSync(shell, ['-c', `${before}${script}\n${ask}`], { encoding: 'utf8' });
  assert.equal(result.stderr.replace(/^.*compopt.*$/gm, '').trim(), '', result.stderr);
  return result.stdout.split('\n').filter((line) => line !== '');
}

function bashSays(...words: readonly string[]): string[] {
  const line = ['megaplane', ...words].map((word) => `'${word}'`).join(' ');
  return said(
    'bash',
    `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _megaplane
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
}

test('the table has every command and flag that help shows', () => {
  const paths = commands.map(({ path }) => path.join(' '));
  for (const path of ['', 'up', 'store snapshot save', 'nodes chaos', 'completion']) {
    assert(paths.includes(path), path);
  }
  const up = commands.find(({ path }) => path.join(' ') === 'up');
  const nodes = up?.flags.find(({ long }) => long === '--nodes');
  assert.deepEqual([nodes?.takes, nodes?.defaultText, nodes?.group], ['value', '10000', 'Size']);
  assert.equal(up?.flags.find(({ long }) => long === '--data-dir')?.takes, 'file');
});

test('bash completes commands, their flags and files', { skip: lacks('bash') }, () => {
  assert.deepEqual(bashSays('sche'), ['scheduler']);
  assert(bashSays('store', '').includes('snapshot'));
  assert.deepEqual(bashSays('up', '--dry'), ['--dry-run']);
  assert.deepEqual(bashSays('up', '--nodes', ''), []);
  assert.deepEqual(bashSays('up', '--nodes', '5', '--sec'), ['--secure-port']);
  assert(bashSays('up', '--data-dir', '/us').includes('/usr'));
  assert(bashSays('doctor', '').includes('network'));
  assert.deepEqual(bashSays('version', '-'), bashSays('version', ''));
});

test('zsh has the words of each place', { skip: lacks('zsh') }, () => {
  const ask = (words: string, current: number): string[] =>
    said(
      'zsh',
      `_describe() { print -l -- "\${words_here[@]}" }
      words=(${words}); CURRENT=${current}; _megaplane`,
    );
  assert(ask('megaplane up --', 3).some((line) => line.startsWith('--dry-run:say what')));
  assert(ask('megaplane store ""', 3).some((line) => line.startsWith('snapshot:')));
});

test('fish completes commands and flags', { skip: lacks('fish') }, () => {
  const found = said('fish', "complete -C 'megaplane up --dry'");
  assert.match(found.join('\n'), /^--dry-run\tsay what would/m);
  assert.match(said('fish', "complete -C 'megaplane sche'").join('\n'), /^scheduler\t/m);
});
