/** Names in camel, snake and kebab case, as huandu/xstrings makes them for sprig. */

const CONNECTOR = /^[-_\s]/;

type WordKind = 'connector' | 'punctuation' | 'upper' | 'letters' | 'number' | 'other' | 'end';

interface Word {
  readonly kind: WordKind;
  readonly text: string;
}

/** Letters that words are made of: of ideographs each stands apart. */
const SMALL = String.raw`[\p{L}--\p{Lu}--[\u3400-\u4D85\u4E00-\u9FCC\u{20000}-\u{2B81D}]]`;
const OTHER = String.raw`[^\-_\s\p{P}\p{Lu}\p{N}${SMALL}]+|[\s\S]`;

/** `HTTPServer` is `HTTP` and `Server`, so the last capital before a small letter begins a word. */
const WORDS: readonly (readonly [kind: WordKind, pattern: RegExp])[] = [
  ['connector', /[-_\s]+/y],
  ['punctuation', /\p{P}+/uy],
  ['upper', new RegExp(String.raw`\p{Lu}+(?=\p{Lu}${SMALL})|\p{Lu}{2,}|\p{Lu}${SMALL}*`, 'vy')],
  ['letters', new RegExp(`${SMALL}+`, 'vy')],
  ['number', /\p{N}+/uy],
  ['other', new RegExp(OTHER, 'vy')],
];

class Words {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#text.length;
  }

  next(): Word {
    for (const [kind, pattern] of WORDS) {
      pattern.lastIndex = this.#at;
      const found = pattern.exec(this.#text)?.[0] ?? '';
      if (found === '') continue;
      this.#at += found.length;
      return { kind, text: found };
    }
    return { kind: 'end', text: '' };
  }
}

/** Words in small letters with `connector` between them. */
export function connected(text: string, connector: string): string {
  const words = new Words(text);
  let made = '';
  const add = ({ kind, text: own }: Word): void => {
    if (kind === 'upper') made += own.toLowerCase();
    else made += kind === 'connector' ? connector.repeat(own.length) : own;
  };
  const isInner = ({ kind }: Word): boolean => kind === 'letters' || kind === 'number';
  const isEdge = ({ kind }: Word): boolean => kind === 'connector' || kind === 'punctuation';
  let word = words.next();
  // letters and numbers after a number belong to it: `2m3s`
  const takeInner = (): void => {
    for (; isInner(word); word = words.next()) add(word);
    if (word.kind !== 'end' && !isEdge(word)) made += connector;
  };
  while (!words.isEmpty) {
    const before = word;
    if (before.kind !== 'connector') add(before);
    word = words.next();
    if (before.kind === 'number') takeInner();
    else if (before.kind === 'connector') add(before);
    else if (before.kind === 'punctuation') continue;
    else if (word.kind !== 'number') {
      if (!isEdge(word)) made += connector;
    } else if (!words.isEmpty) {
      const number = word;
      word = words.next();
      if (word.kind === 'letters') {
        made += connector;
        add(number);
        takeInner();
      } else {
        add(number);
        if (!isEdge(word)) made += connector;
      }
    }
  }
  add(word);
  return made;
}

/** `some_words` as `SomeWords`; connectors at the ends and doubled ones stay. */
export function pascalCase(text: string): string {
  const lead = /^[-_\s]*/.exec(text)?.[0] ?? '';
  const runes = Array.from(text.slice(lead.length));
  let made = lead;
  let before = runes[0]?.toUpperCase() ?? '';
  let isUpper = isCapital(runes[0] ?? '');
  for (let rune of runes.slice(1)) {
    if (CONNECTOR.test(rune) && CONNECTOR.test(before)) {
      made += before;
      continue;
    }
    if (CONNECTOR.test(before)) {
      isUpper = isCapital(rune);
      rune = rune.toUpperCase();
    } else {
      if (isUpper && isCapital(rune)) rune = rune.toLowerCase();
      else isUpper = false;
      made += before;
    }
    before = rune;
  }
  return made + before;
}

function isCapital(rune: string): boolean {
  return /^\p{Lu}/u.test(rune);
}
