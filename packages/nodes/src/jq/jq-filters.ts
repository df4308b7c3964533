/** Functions of jq that take filters: they choose what is worked out, and where. */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isNumber, isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import {
  beyond,
  each,
  emitMembers,
  off,
  self,
  someOf,
  spend,
  valuesOf,
  type Emit,
  type Node,
  type Path,
} from './jq-nodes.ts';
import { atPath, eachPath, pathOf, withoutPaths, withPath } from './jq-paths.ts';
import { isTruthy, shown } from './jq-values.ts';

type FilterOf = (args: readonly Node[]) => Node;

function numberOf(value: JsonValue): number {
  if (isNumber(value)) return Number(value);
  throw new JqError(`expected a number but got: ${shown(value)}`);
}

function failed(value: JsonValue): never {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  throw new JqError(`error: ${text}`, value);
}

function descend(value: JsonValue, path: Path | null, emit: Emit): void {
  spend();
  emit(value, path);
  if (Array.isArray(value) || isObject(value)) {
    emitMembers(value, path, (member, found) => descend(member, found, emit));
  }
}

const recurse: FilterOf =
  ([by = self]) =>
  (input, path, scope, emit) => {
    const walk: Emit = (value, found) => {
      spend();
      emit(value, found);
      by(value, found, scope, walk);
    };
    walk(input, path);
  };

/** As many of the first values as `count` says, or what comes after them. */
function counted(isLimit: boolean): FilterOf {
  return ([count = self, of = self]) =>
    (input, path, scope, emit) =>
      count(input, null, scope, (value) => {
        let rest = numberOf(value);
        const name = isLimit ? 'limit' : 'skip';
        if (rest < 0) throw new JqError(`${name} doesn't support negative count`);
        if (!isLimit) {
          return of(input, path, scope, (one, found) => {
            if (rest-- <= 0) emit(one, found);
          });
        }
        if (rest === 0) return;
        const kept: [JsonValue, Path | null][] = [];
        someOf(of, { input, path, scope }, (one, found) => {
          kept.push([one, found]);
          return --rest > 0;
        });
        for (const [one, found] of kept) emit(one, found);
      });
}

/** Whether one of the values of `of` is as `by` says (`isAny`), or all are. */
function quantified(isAny: boolean, of: Node, by: Node): Node {
  return (input, path, scope, emit) => {
    let isMet = !isAny;
    someOf(
      (value, at, known, tell) => of(value, at, known, (one) => by(one, null, known, tell)),
      { input, path: null, scope },
      (value) => {
        if (isTruthy(value) === isAny) isMet = isAny;
        return isMet !== isAny;
      },
    );
    emit(isMet, off(path));
  };
}

function range(from: Node, to: Node, by: Node): Node {
  return (input, path, scope, emit) =>
    from(input, null, scope, (start) =>
      to(input, null, scope, (end) =>
        by(input, null, scope, (step) => {
          const [last, stride] = [numberOf(end), numberOf(step)];
          if (stride === 0) return;
          for (let at = numberOf(start); stride > 0 ? at < last : at > last; at += stride) {
            spend();
            emit(at, off(path));
          }
        }),
      ),
    );
}

/** Round after round for each value; `told` says what of it is given, and whether it goes on. */
const whiles: FilterOf =
  ([test = self, update = self]) =>
  (input, path, scope, emit) => {
    const go: Emit = (value, found) => {
      spend();
      test(value, null, scope, (met) => {
        if (!isTruthy(met)) return;
        emit(value, found);
        update(value, found, scope, go);
      });
    };
    go(input, path);
  };

const until: FilterOf =
  ([test = self, update = self]) =>
  (input, path, scope, emit) => {
    const go: Emit = (value, found) => {
      spend();
      test(value, null, scope, (met) =>
        isTruthy(met) ? emit(value, found) : update(value, found, scope, go),
      );
    };
    go(input, path);
  };

const zero: Node = (_input, path, _scope, emit) => emit(0, off(path));
const one: Node = (_input, path, _scope, emit) => emit(1, off(path));
const members: Node = each(self);

const FILTERS: Readonly<Record<string, FilterOf>> = {
  'empty/0': () => () => {},
  'error/0': () => (input) => failed(input),
  'error/1':
    ([of = self]) =>
    (input, _path, scope) =>
      of(input, null, scope, (value) => failed(value)),
  'select/1':
    ([by = self]) =>
    (input, path, scope, emit) =>
      by(input, null, scope, (value) => {
        if (isTruthy(value)) emit(input, path);
      }),
  'recurse/0': () => (input, path, _scope, emit) => descend(input, path, emit),
  'recurse/1': recurse,
  'map/1':
    ([by = self]) =>
    (input, path, scope, emit) => {
      const made: JsonValue[] = [];
      emitMembers(input, null, (member) => made.push(...valuesOf(by, member, scope)));
      emit(made, off(path));
    },
  'first/1': ([of = self]) => counted(true)([one, of]),
  'last/1':
    ([of = self]) =>
    (input, path, scope, emit) => {
      let last: readonly [JsonValue, Path | null] | undefined;
      of(input, path, scope, (value, found) => {
        spend();
        last = [value, found];
      });
      if (last !== undefined) emit(...last);
    },
  'limit/2': counted(true),
  'skip/2': counted(false),
  'isempty/1':
    ([of = self]) =>
    (input, path, scope, emit) => {
      let isEmpty = true;
      someOf(of, { input, path: null, scope }, () => (isEmpty = false));
      emit(isEmpty, off(path));
    },
  'any/0': () => quantified(true, members, self),
  'all/0': () => quantified(false, members, self),
  'any/1': ([by = self]) => quantified(true, members, by),
  'all/1': ([by = self]) => quantified(false, members, by),
  'any/2': ([of = self, by = self]) => quantified(true, of, by),
  'all/2': ([of = self, by = self]) => quantified(false, of, by),
  'range/1': ([to = self]) => range(zero, to, one),
  'range/2': ([from = self, to = self]) => range(from, to, one),
  'range/3': ([from = self, to = self, by = self]) => range(from, to, by),
  'while/2': whiles,
  'until/2': until,
  'repeat/1':
    ([of = self]) =>
    (input, path, scope, emit) => {
      for (;;) {
        spend();
        of(input, path, scope, emit);
      }
    },
  'env/0': () => (_input, path, _scope, emit) => emit({}, off(path)),
  'path/1':
    ([of = self]) =>
    (input, path, scope, emit) =>
      eachPath(of, [input, scope], (found) => emit([...found], off(path))),
  'getpath/1':
    ([of = self]) =>
    (input, path, scope, emit) =>
      of(input, null, scope, (value) => {
        const keys = pathOf(value);
        const found = keys.reduce((at, key) => beyond(at, key, input), path);
        emit(atPath(input, keys), found);
      }),
  'setpath/2':
    ([of = self, to = self]) =>
    (input, path, scope, emit) =>
      to(input, null, scope, (value) =>
        of(input, null, scope, (keys) => emit(withPath(input, pathOf(keys), value), off(path))),
      ),
  'delpaths/1':
    ([of = self]) =>
    (input, path, scope, emit) =>
      of(input, null, scope, (value) =>
        emit(withoutPaths(input, pathOf(value).map(pathOf)), off(path)),
      ),
  'del/1':
    ([of = self]) =>
    (input, path, scope, emit) => {
      const found: Path[] = [];
      eachPath(of, [input, scope], (at) => found.push(at));
      emit(withoutPaths(input, found), off(path));
    },
  'iterables/0': () => (input, path, _scope, emit) => {
    if (Array.isArray(input) || isObject(input)) emit(input, path);
  },
  'scalars/0': () => (input, path, _scope, emit) => {
    if (!Array.isArray(input) && !isObject(input)) emit(input, path);
  },
};

function ofType(isOne: (value: JsonValue) => boolean): FilterOf {
  return () => (input, path, _scope, emit) => {
    if (isOne(input)) emit(input, path);
  };
}

const TYPES: Readonly<Record<string, FilterOf>> = {
  'arrays/0': ofType((value) => Array.isArray(value)),
  'objects/0': ofType((value) => isObject(value)),
  'strings/0': ofType((value) => typeof value === 'string'),
  'numbers/0': ofType((value) => isNumber(value)),
  'booleans/0': ofType((value) => typeof value === 'boolean'),
  'nulls/0': ofType((value) => value === null),
  'values/0': ofType((value) => value !== null),
};

/** By name and number of arguments. */
export const JQ_FILTERS: ReadonlyMap<string, FilterOf> = new Map(
  Object.entries({ ...FILTERS, ...TYPES }),
);
