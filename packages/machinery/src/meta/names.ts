/**
 * The forms that names, labels and their parts must have, with the texts of upstream.
 * Each function returns what is wrong, in words, and an empty list if nothing is.
 */

/** What a name must match, how the text describes it, and examples. */
interface NameForm {
  readonly pattern: string;
  readonly text: string;
  readonly examples: readonly string[];
  readonly lengthMax: number;
}

const LABEL_PATTERN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

const DNS_LABEL: NameForm = {
  pattern: LABEL_PATTERN,
  text:
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " +
    'and must start and end with an alphanumeric character',
  examples: ['my-name', '123-abc'],
  lengthMax: 63,
};

const DNS_SUBDOMAIN: NameForm = {
  pattern: `${LABEL_PATTERN}(\\.${LABEL_PATTERN})*`,
  text:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' " +
    "or '.', and must start and end with an alphanumeric character",
  examples: ['example.com'],
  lengthMax: 253,
};

const DNS_1035_LABEL: NameForm = {
  pattern: '[a-z]([-a-z0-9]*[a-z0-9])?',
  text:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with " +
    'an alphabetic character, and end with an alphanumeric character',
  examples: ['my-name', 'abc-123'],
  lengthMax: 63,
};

const QUALIFIED_NAME_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
  'alphanumeric character';

const QUALIFIED_NAME: NameForm = {
  pattern: '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]',
  text: QUALIFIED_NAME_TEXT,
  examples: ['MyName', 'my.name', '123-abc'],
  lengthMax: 63,
};

const LABEL_VALUE: NameForm = {
  pattern: `(${QUALIFIED_NAME.pattern})?`,
  text:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or " +
    "'.', and must start and end with an alphanumeric character",
  examples: ['MyValue', 'my_value', '12345'],
  lengthMax: 63,
};

const compiled = new Map<NameForm, RegExp>();

function matches(form: NameForm, value: string): boolean {
  let expression = compiled.get(form);
  if (expression === undefined) compiled.set(form, (expression = new RegExp(`^${form.pattern}$`)));
  // `$` would also match before a final newline only with the m flag; without it, it does not.
  return expression.test(value);
}

function formText(form: NameForm): string {
  const examples = form.examples.map((example) => `'${example}', `).join(' or ');
  return `${form.text} (e.g. ${examples}regex used for validation is '${form.pattern}')`;
}

function findings(form: NameForm, value: string, unit: LengthUnit = 'characters'): string[] {
  const found: string[] = [];
  if (Buffer.byteLength(value) > form.lengthMax) found.push(tooLongText(form.lengthMax, unit));
  if (!matches(form, value)) found.push(formText(form));
  return found;
}

/** Upstream counts bytes, and says so only of labels and their keys. */
type LengthUnit = 'bytes' | 'characters';

/** The text for a name that is too long, where a whole field is not concerned. */
export function tooLongText(lengthMax: number, unit: LengthUnit = 'characters'): string {
  return `must be no more than ${lengthMax} ${unit}`;
}

export function dnsLabelErrors(value: string): string[] {
  const found = findings(DNS_LABEL, value);
  // A name that is a subdomain can only fail as a label by its dots, once its length is judged.
  if (!matches(DNS_LABEL, value) && matches(DNS_SUBDOMAIN, value)) {
    found[found.length - 1] = 'must not contain dots';
  }
  return found;
}

export function dnsSubdomainErrors(value: string, unit?: LengthUnit): string[] {
  return findings(DNS_SUBDOMAIN, value, unit);
}

export function dns1035LabelErrors(value: string): string[] {
  return findings(DNS_1035_LABEL, value);
}

export function labelValueErrors(value: string): string[] {
  return findings(LABEL_VALUE, value, 'bytes');
}

/** Keys of labels and annotations, finalizers, taints: `[prefix/]name`. */
export function qualifiedNameErrors(value: string): string[] {
  const parts = value.split('/');
  if (parts.length > 2) {
    const form = formText(QUALIFIED_NAME);
    return [
      `a valid label key ${form} with an optional DNS subdomain prefix and '/' ` +
        "(e.g. 'example.com/MyName')",
    ];
  }
  const name = parts.at(-1) ?? '';
  const found: string[] = [];
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') found.push('prefix part must be non-empty');
    else
      found.push(...findings(DNS_SUBDOMAIN, prefix, 'bytes').map((text) => `prefix part ${text}`));
  }
  if (name === '') found.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > QUALIFIED_NAME.lengthMax) {
    found.push(`name part ${tooLongText(QUALIFIED_NAME.lengthMax, 'bytes')}`);
  }
  if (!matches(QUALIFIED_NAME, name)) found.push(`name part ${formText(QUALIFIED_NAME)}`);
  return found;
}

const CONFIG_KEY: NameForm = {
  pattern: '[-._a-zA-Z0-9]+',
  text: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  examples: ['key.name', 'KEY_NAME', 'key-name'],
  lengthMax: 253,
};

/** Keys of config maps and secrets. */
export function configKeyErrors(value: string): string[] {
  const found = findings(CONFIG_KEY, value);
  if (value === '.' || value === '..') found.push(`must not be '${value}'`);
  else if (value.startsWith('..')) found.push("must not start with '..'");
  return found;
}

const C_IDENTIFIER: NameForm = {
  pattern: '[A-Za-z_][A-Za-z0-9_]*',
  text:
    "a valid C identifier must start with alphabetic character or '_', followed by a string of " +
    "alphanumeric characters or '_'",
  examples: ['my_name', 'MY_NAME', 'MyName'],
  lengthMax: Infinity,
};

/** Names in the programs of others. */
export function identifierErrors(value: string): string[] {
  return findings(C_IDENTIFIER, value);
}

const CONDITION_REASON: NameForm = {
  pattern: '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
  text:
    'a condition reason must start with alphabetic character, optionally followed by a string ' +
    "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  examples: ['my_name', 'MY_NAME', 'MyName', 'ReasonA,ReasonB', 'ReasonA:ReasonB'],
  lengthMax: Infinity,
};

/** Why a condition is as it is: one word for programs. */
export function conditionReasonErrors(value: string): string[] {
  return findings(CONDITION_REASON, value);
}

/** Names that are only required to fit into a URL's path: roles, and every name at least. */
export function pathSegmentErrors(value: string, isPrefix = false): string[] {
  if (!isPrefix && (value === '.' || value === '..')) return [`may not be '${value}'`];
  return ['/', '%'].filter((bad) => value.includes(bad)).map((bad) => `may not contain '${bad}'`);
}

/** Names of ports: what a service or a probe may refer to. */
export function portNameErrors(value: string): string[] {
  const found: string[] = [];
  if (value.length > 15) found.push(tooLongText(15));
  if (!/^[-a-z0-9]+$/.test(value)) {
    found.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) found.push('must contain at least one letter (a-z)');
  if (value.includes('--')) found.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) {
    found.push('must not begin or end with a hyphen');
  }
  return found;
}

/** Names of environment variables: anything printable but `=`. */
export function envNameErrors(value: string): string[] {
  if (value === '') return ['environment variable name must be non-empty'];
  if (/^[ -<>-~]*$/.test(value)) return [];
  return [
    'a valid environment variable name must consist only of printable ASCII characters other ' +
      "than '='",
  ];
}

/** The form of a generated name's base: a trailing dash is allowed, as something follows it. */
export function withoutTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix;
}

export function rangeText(min: number, max: number): string {
  return `must be between ${min} and ${max}, inclusive`;
}

export function portNumberErrors(port: number): string[] {
  return port >= 1 && port <= 65535 ? [] : [rangeText(1, 65535)];
}

const UNDERSCORE_LABEL = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const SEARCH_NAME: NameForm = {
  pattern: `${UNDERSCORE_LABEL}(\\.${UNDERSCORE_LABEL})*`,
  text:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' " +
    "or '.', and must start and end with an alphanumeric character",
  examples: ['example.com'],
  lengthMax: 253,
};

/** Domains that a resolver searches: as subdomains, but with underscores. */
export function searchNameErrors(value: string): string[] {
  return findings(SEARCH_NAME, value);
}

const WILDCARD_NAME: NameForm = {
  pattern: `\\*\\.${DNS_SUBDOMAIN.pattern}`,
  text:
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, " +
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an " +
    'alphanumeric character',
  examples: ['*.example.com'],
  lengthMax: 253,
};

/** Names of hosts, of which `*.` in front stands for many. */
export function hostErrors(value: string): string[] {
  return value.includes('*') ? findings(WILDCARD_NAME, value) : dnsSubdomainErrors(value);
}
