/** Variables of jq: `as`, `reduce`, `foreach`; and assignments to what paths lead to. */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { off, someOf, withValue, type Node, type Path, type Scope } from './jq-nodes.ts';
import { atPath, eachPath, withoutPaths, withPath } from './jq-paths.ts';
import { indexed, isTruthy, operate, shown } from './jq-values.ts';

/** What a value is taken apart by. */
export type Pattern =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly items: readonly Pattern[] }
  | {
      readonly kind: 'map';
      readonly members: readonly {
        readonly key: Node;
        /** `$name` or `$name: …`: the member itself has a name. */
        readonly name: string | null;
        readonly inner: Pattern | null;
      }[];
    };

/** Patterns that are tried in turn (`?//`), and all variables that they name. */
export interface Binding {
  readonly patterns: readonly Pattern[];
  readonly names: readonly string[];
}

type Take = (scope: Scope | null) => void;

function match(pattern: Pattern, value: JsonValue, scope: Scope | null, take: Take): void {
  if (pattern.kind === 'name') return take(withValue(scope, pattern.name, value));
  if (pattern.kind === 'list') {
    if (value !== null && !Array.isArray(value)) {
      throw new JqError(`expected an array but got: ${shown(value)}`);
    }
    const next = (at: number, known: Scope | null): void => {
      const item = pattern.items[at];
      if (item === undefined) return take(known);
      match(item, indexed(value, at), known, (scoped) => next(at + 1, scoped));
    };
    return next(0, scope);
  }
  const next = (at: number, known: Scope | null): void => {
    const member = pattern.members[at];
    if (member === undefined) return take(known);
    member.key(value, null, known, (key) => {
      if (typeof key !== 'string') throw new JqError('expected a string for object key');
      const found = indexed(value, key);
      const named = member.name === null ? known : withValue(known, member.name, found);
      if (member.inner === null) next(at + 1, named);
      else match(member.inner, found, named, (scoped) => next(at + 1, scoped));
    });
  };
  next(0, scope);
}

function bind(
  { patterns, names }: Binding,
  value: JsonValue,
  scope: Scope | null,
  take: Take,
): void {
  const [only] = patterns;
  if (only !== undefined && patterns.length === 1) return match(only, value, scope, take);
  const empty = names.reduce<Scope | null>((all, name) => withValue(all, name, null), scope);
  for (const [at, pattern] of patterns.entries()) {
    try {
      return match(pattern, value, empty, take);
    } catch (error) {
      if (!(error instanceof JqError) || at === patterns.length - 1) throw error;
    }
  }
}

/** `source as $x | body`. */
export function bound(source: Node, by: Binding, body: Node): Node {
  return (input, path, scope, emit) =>
    source(input, null, scope, (value) =>
      bind(by, value, scope, (inner) => body(input, path, inner, emit)),
    );
}

/** `reduce`: the last value of `update` is the next state. */
export function folded(
  source: Node,
  by: Binding,
  { first, update }: { readonly first: Node; readonly update: Node },
): Node {
  return (input, path, scope, emit) =>
    first(input, path, scope, (start, at) => {
      let state = start;
      let place = at;
      source(input, null, scope, (value) =>
        bind(by, value, scope, (inner) => {
          // without a value of `update` the state stays as it is
          let last: readonly [JsonValue, Path | null] = [state, place];
          update(state, place, inner, (made, found) => {
            last = [made, found];
          });
          [state, place] = last;
        }),
      );
      emit(state, place);
    });
}

/** `foreach`: every value of `update` is the next state, and told of. */
export function unfolded(
  source: Node,
  by: Binding,
  { first, update, told }: { readonly first: Node; readonly update: Node; readonly told: Node },
): Node {
  return (input, path, scope, emit) =>
    first(input, path, scope, (start, at) => {
      let state = start;
      let place = at;
      source(input, null, scope, (value) =>
        bind(by, value, scope, (inner) => {
          update(state, place, inner, (made, found) => {
            [state, place] = [made, found];
            told(made, found, inner, emit);
          });
        }),
      );
    });
}

/** `left = right` and its like. */
export function assigned(operator: string, left: Node, right: Node): Node {
  if (operator === '|=') return modified(left, right);
  return (input, path, scope, emit) =>
    right(input, null, scope, (value) => {
      if (operator === '=') {
        let made = input;
        eachPath(left, [input, scope], (found) => {
          made = withPath(made, found, value);
        });
        return emit(made, off(path));
      }
      const combined: Node = (old, _path, _scope, tell) => {
        const isKept = operator === '//=' && isTruthy(old);
        if (operator === '//=') tell(isKept ? old : value, null);
        else tell(operate(operator.slice(0, -1), old, value), null);
      };
      modified(left, combined)(input, path, scope, emit);
    });
}

/** The first value that `update` gives takes the place of the old one; without one that goes. */
function modified(left: Node, update: Node): Node {
  return (input, path, scope, emit) => {
    let made = input;
    const gone: Path[] = [];
    eachPath(left, [input, scope], (found) => {
      let isGiven = false;
      const from = { input: atPath(made, found), path: null, scope };
      someOf(update, from, (value) => {
        isGiven = true;
        made = withPath(made, found, value);
        return false;
      });
      if (!isGiven) gone.push(found);
    });
    emit(withoutPaths(made, gone), off(path));
  };
}
