/** Formats that have names, as Kubernetes adds them to CEL; and keys of JSON patches. */
import { ownMember } from '@megaplane/base/members';
import {
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
  withoutTrailingDash,
} from '../../meta/names.ts';
import type { Library } from '../values/functions.ts';
import { parseTimestamp } from '../values/time-library.ts';
import { ArrayList, CelError, Opaque, Optional, type CelValue } from '../values/values.ts';

export class FormatValue extends Opaque {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly name: string;
  readonly errorsOf: (text: string) => string[];
  /** Characters of the pattern that upstream takes for it; what it costs rests on that. */
  readonly patternSize: number;
  constructor(name: string, errorsOf: (text: string) => string[], patternSize: number) {
    super();
    this.name = name;
    this.errorsOf = errorsOf;
    this.patternSize = patternSize;
  }
  equals(other: Opaque): boolean {
    return other instanceof FormatValue && other.name === this.name;
  }
}

const asPrefix =
  (errorsOf: (text: string) => string[]) =>
  (text: string): string[] =>
    errorsOf(withoutTrailingDash(text));

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const UUID = /^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$/;

const only = (isFine: boolean, why: string): string[] => (isFine ? [] : [why]);

const FORMATS: Readonly<Record<string, (text: string) => string[]>> = {
  dns1123Label: dnsLabelErrors,
  dns1123Subdomain: dnsSubdomainErrors,
  dns1035Label: dns1035LabelErrors,
  qualifiedName: qualifiedNameErrors,
  dns1123LabelPrefix: asPrefix(dnsLabelErrors),
  dns1123SubdomainPrefix: asPrefix(dnsSubdomainErrors),
  dns1035LabelPrefix: asPrefix(dns1035LabelErrors),
  labelValue: labelValueErrors,
  uri: (text) => only(/^(?:[A-Za-z][A-Za-z0-9+.-]*:|\/)\S*$/.test(text), 'invalid URI for request'),
  uuid: (text) => only(UUID.test(text), 'does not match the UUID format'),
  byte: (text) => only(BASE64.test(text), 'invalid base64'),
  date: (text) => only(!(parseTimestamp(`${text}T00:00:00Z`) instanceof CelError), 'invalid date'),
  datetime: (text) => only(!(parseTimestamp(text) instanceof CelError), 'invalid datetime'),
};

const PATTERN_SIZES: Readonly<Record<string, number>> = {
  dns1123Label: 30,
  dns1123Subdomain: 60,
  dns1035Label: 30,
  qualifiedName: 60,
  dns1123LabelPrefix: 30,
  dns1123SubdomainPrefix: 60,
  dns1035LabelPrefix: 30,
  labelValue: 40,
  uri: 1103,
  uuid: 70,
  byte: 84,
  date: 71,
  datetime: 71,
};

const values = new Map(
  Object.entries(FORMATS).map(([name, errorsOf]) => [
    name,
    new FormatValue(name, errorsOf, ownMember(PATTERN_SIZES, name) ?? 0),
  ]),
);

function formats(): Library {
  const library: Record<string, () => CelValue> = {};
  for (const [name, value] of values) {
    library[`format_${name}: format.${name}(): kubernetes.NamedFormat`] = () => value;
  }
  return library;
}

function validate({ errorsOf }: FormatValue, text: string): CelValue {
  const errors = errorsOf(text);
  return new Optional(errors.length === 0 ? undefined : new ArrayList(errors));
}

export const FORMAT_LIBRARY: readonly Library[] = [
  formats(),
  {
    'format_named: format.named(string): optional(kubernetes.NamedFormat)': (name: string) =>
      new Optional(values.get(name)),
    'format_validate: kubernetes.NamedFormat . validate(string): optional(list(string))': validate,
  },
];

/** Only where expressions make JSON patches. */
export const PATCH_LIBRARY: Library = {
  'string_jsonpatch_escapeKey_string: jsonpatch.escapeKey(string): string': (text: string) =>
    text.replaceAll('~', '~0').replaceAll('/', '~1'),
};
