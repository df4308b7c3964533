/**
 * Reads what an extender answers into the types of `extender/v1`, as Go's decoder does for
 * kube-scheduler: an answer of another shape is an error, in the decoder's words, and never taken
 * for one that says nothing. Only members that the scheduler looks at are judged.
 */
import type { Reply } from '../sharding/protocol/rounds.ts';
import { firstValue } from '@megaplane/machinery/json-syntax';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import {
  isWrittenInteger,
  parseWithLiterals,
  type NumberLiterals,
} from '@megaplane/machinery/number-literals';

/** `go`: the type's name in errors. */
type GoType =
  | { readonly kind: 'string' | 'int64'; readonly go: string }
  | { readonly kind: 'list' | 'map'; readonly go: string; readonly items: GoType }
  | {
      readonly kind: 'struct';
      readonly go: string;
      readonly fields: Readonly<Record<string, GoType>>;
    };

const STRING: GoType = { kind: 'string', go: 'string' };
const INT64: GoType = { kind: 'int64', go: 'int64' };

function struct(go: string, fields: Readonly<Record<string, GoType>>): GoType {
  return { kind: 'struct', go, fields };
}

function list(go: string, items: GoType): GoType {
  return { kind: 'list', go, items };
}

const FAILED_NODES: GoType = { kind: 'map', go: 'v1.FailedNodesMap', items: STRING };
const NODE = struct('v1.Node', { metadata: struct('v1.ObjectMeta', { name: STRING }) });
const META_VICTIMS = struct('v1.MetaVictims', {
  Pods: list('[]*v1.MetaPod', struct('v1.MetaPod', { UID: STRING })),
  NumPDBViolations: INT64,
});

export type ResultName =
  | 'ExtenderFilterResult'
  | 'HostPriorityList'
  | 'ExtenderPreemptionResult'
  | 'ExtenderBindingResult';

const RESULTS: Readonly<Record<ResultName, GoType>> = {
  ExtenderFilterResult: struct('v1.ExtenderFilterResult', {
    Nodes: struct('v1.NodeList', { items: list('[]v1.Node', NODE) }),
    NodeNames: list('[]string', STRING),
    FailedNodes: FAILED_NODES,
    FailedAndUnresolvableNodes: FAILED_NODES,
    Error: STRING,
  }),
  HostPriorityList: list(
    'v1.HostPriorityList',
    struct('v1.HostPriority', { Host: STRING, Score: INT64 }),
  ),
  ExtenderPreemptionResult: struct('v1.ExtenderPreemptionResult', {
    NodeNameToMetaVictims: {
      kind: 'map',
      go: 'map[string]*v1.MetaVictims',
      items: META_VICTIMS,
    },
  }),
  ExtenderBindingResult: struct('v1.ExtenderBindingResult', { Error: STRING }),
};

/**
 * `cut`: why the answer is not whole, or empty. A value that was complete before is one, and what
 * follows it is not looked at.
 */
export function readAnswer(bytes: Buffer, result: ResultName, cut = ''): Answer {
  // Go looks at bytes, and shows the one that it stumbles over as a character.
  const { failure, end } = firstValue(bytes.toString('latin1'));
  if (failure !== '') {
    const isCut = failure === 'EOF' || failure === 'unexpected EOF';
    return { ok: false, text: isCut && cut !== '' ? cut : failure };
  }
  const { value, numbers } = parseWithLiterals(bytes.toString('utf8', 0, end));
  const wrong = new Judge(numbers).value(value, RESULTS[result]);
  return wrong === '' ? { ok: true, value } : { ok: false, text: wrong };
}

class Judge {
  readonly #numbers: NumberLiterals;
  readonly #path: string[] = [];
  /** The innermost struct. */
  #struct = '';
  #written: string | undefined;

  constructor(numbers: NumberLiterals) {
    this.#numbers = numbers;
  }

  /** What is wrong first; empty if nothing is. */
  value(value: JsonValue | undefined, type: GoType): string {
    if (value === null || value === undefined) return '';
    switch (type.kind) {
      case 'string':
        return typeof value === 'string' ? '' : this.#mismatch(wordOf(value), type);
      case 'int64':
        return this.#integer(value, type);
      case 'list':
        return Array.isArray(value)
          ? firstOf(value, (item, index) => this.#member(value, String(index), item, type.items))
          : this.#mismatch(wordOf(value), type);
      case 'map':
        return isObject(value)
          ? firstOf(Object.entries(value), ([name, one]) =>
              this.#member(value, name, one, type.items),
            )
          : this.#mismatch(wordOf(value), type);
      case 'struct':
        return isObject(value)
          ? firstOf(Object.entries(value), ([name, one]) => this.#field(value, name, one, type))
          : this.#mismatch(wordOf(value), type);
    }
  }

  #member(holder: object, name: string, value: JsonValue | undefined, type: GoType): string {
    this.#written = this.#numbers.get(holder)?.get(name);
    return this.value(value, type);
  }

  /** Go finds a field by its name in any case. */
  #field(
    holder: JsonObject,
    name: string,
    value: JsonValue | undefined,
    { go, fields }: Extract<GoType, { kind: 'struct' }>,
  ): string {
    const wanted = name.toLowerCase();
    const found = Object.entries(fields).find(([one]) => one.toLowerCase() === wanted);
    if (found === undefined) return '';
    const [field, type] = found;
    const outer = this.#struct;
    this.#struct = go.slice(go.indexOf('.') + 1);
    this.#path.push(field);
    const wrong = this.#member(holder, name, value, type);
    this.#path.pop();
    this.#struct = outer;
    return wrong;
  }

  #integer(value: JsonValue, type: GoType): string {
    if (typeof value !== 'number') return this.#mismatch(wordOf(value), type);
    const written = this.#written ?? String(value);
    return isWrittenInteger(written, 64) ? '' : this.#mismatch(`number ${written}`, type);
  }

  #mismatch(found: string, { go }: GoType): string {
    const where =
      this.#path.length === 0
        ? `value of type ${go}`
        : `struct field ${this.#struct}.${this.#path.join('.')} of type ${go}`;
    return `json: cannot unmarshal ${found} into Go ${where}`;
  }
}

function firstOf<Item>(items: readonly Item[], judge: (item: Item, index: number) => string) {
  for (const [index, item] of items.entries()) {
    const wrong = judge(item, index);
    if (wrong !== '') return wrong;
  }
  return '';
}

/** What Go calls a JSON value that it cannot use. */
function wordOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** By call; `text`: why there is no answer. */
export type Answer =
  | { readonly ok: true; readonly value: JsonValue; readonly reply?: Reply }
  | { readonly ok: false; readonly text: string };
