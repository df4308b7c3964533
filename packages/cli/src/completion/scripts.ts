/**
 * Completion scripts, made of the program's table of commands. A script has all that it needs in
 * itself: a shell that asked the program at each key would wait for its start.
 */
import type { CommandRow, FlagRow } from './table.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The script of one shell for the program `name`. */
export function completionScript(
  shell: Shell,
  name: string,
  commands: readonly CommandRow[],
): string {
  switch (shell) {
    case 'bash':
      return bash(name, commands);
    case 'zsh':
      return zsh(name, commands);
    case 'fish':
      return fish(name, commands);
  }
}

/** Commands by `/store/snapshot`; the program itself is the empty text. */
function placeOf(path: readonly string[]): string {
  return path.map((word) => `/${word}`).join('');
}

function placesBelow(commands: readonly CommandRow[]): string {
  const places = commands.map(({ path }) => placeOf(path)).filter((place) => place !== '');
  return places.join('|');
}

function namesOf({ long, short }: FlagRow): string[] {
  return [long, short].filter((name) => name !== '');
}

/** Patterns `place:flag` of the flags that take this. */
function patterns(commands: readonly CommandRow[], takes: FlagRow['takes']): string {
  const found = commands.flatMap(({ path, flags }) =>
    flags
      .filter((flag) => flag.takes === takes)
      .flatMap((flag) => namesOf(flag).map((name) => `${placeOf(path)}:${name}`)),
  );
  return found.length === 0 ? ':' : found.join('|');
}

function bash(name: string, commands: readonly CommandRow[]): string {
  const cases = commands.map(({ path, children, flags }) => {
    const words = [...children, ...flags.flatMap(namesOf)];
    return `    '${placeOf(path)}') words='${words.join(' ')}' ;;`;
  });
  return `# bash completion for ${name}
#   source <(${name} completion bash)
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local place='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place/\${COMP_WORDS[i]}" in
      ${placesBelow(commands)}) place=$place/\${COMP_WORDS[i]} ;;
    esac
  done
  COMPREPLY=()
  case "$place:$previous" in
    ${patterns(commands, 'file')})
      COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null; return ;;
    ${patterns(commands, 'value')}) return ;;
  esac
  case "$place" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then
    COMPREPLY=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null
  fi
}
complete -F _${name} ${name}
`;
}

function zsh(name: string, commands: readonly CommandRow[]): string {
  const byPlace = new Map(commands.map((row) => [placeOf(row.path), row]));
  const cases = commands.map(({ path, children, flags }) => {
    const place = placeOf(path);
    const words = [
      ...children.map((child) => [child, byPlace.get(`${place}/${child}`)?.summary ?? '']),
      ...flags.flatMap((flag) => namesOf(flag).map((long) => [long, flag.description])),
    ];
    const shown = words.map(([word = '', text = '']) => `      ${zshWord(word, text)}`);
    return `    '${place}') words_here=(\n${shown.join('\n')}\n      ) ;;`;
  });
  return `#compdef ${name}
# zsh completion for ${name}
#   source <(${name} completion zsh)
_${name}() {
  local place='' previous=\${words[CURRENT-1]} word i
  local -a words_here
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case "$place/$word" in
      ${placesBelow(commands)}) place=$place/$word ;;
    esac
  done
  case "$place:$previous" in
    ${patterns(commands, 'file')}) _files; return ;;
    ${patterns(commands, 'value')}) return 1 ;;
  esac
  case "$place" in
${cases.join('\n')}
  esac
  _describe '${name}' words_here || _files
}
if [ "\${funcstack[1]}" = "_${name}" ]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

/** A word and what it is, in single quotes, with the colon between them. */
function zshWord(word: string, text: string): string {
  return quoted(`${word.replaceAll(':', '\\:')}:${firstLine(text)}`);
}

function fish(name: string, commands: readonly CommandRow[]): string {
  const known = commands.map(({ path }) => placeOf(path)).filter((place) => place !== '');
  const lines = commands.flatMap(({ path, children, flags }) => {
    const place = placeOf(path);
    const at = `complete -c ${name} -n '__${name}_at ${place === '' ? '/' : place}'`;
    const summaries = new Map(commands.map((row) => [placeOf(row.path), row.summary]));
    return [
      ...children.map((child) => {
        const text = firstLine(summaries.get(`${place}/${child}`) ?? '');
        return `${at} -f -a ${child} -d ${quoted(text)}`;
      }),
      ...flags.map((flag) => {
        const takes = { file: ' -r -F', value: ' -x', nothing: '' }[flag.takes];
        const short = flag.short === '' ? '' : ` -s ${flag.short.slice(1)}`;
        const long = flag.long === '' ? '' : ` -l ${flag.long.slice(2)}`;
        return `${at}${short}${long}${takes} -d ${quoted(firstLine(flag.description))}`;
      }),
    ];
  });
  return `# fish completion for ${name}
#   ${name} completion fish | source
function __${name}_at
  set -l place ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$place/$word" ${known.join(' ')}
      set place "$place/$word"
    end
  end
  test "$place" = (string replace -r '^/$' '' -- $argv[1])
end
${lines.join('\n')}
`;
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "'\\''")}'`;
}
