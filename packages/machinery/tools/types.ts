/**
 * Joins what Go's structs tell (order, protobuf numbers, what is omitted; `gostructs.txt`) with
 * what OpenAPI tells (list types and merge keys) into the table of `src/schema.ts`: one line a
 * type, referred to by its line number. /
 */

interface OpenApiField {
  readonly $ref?: string;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-patch-strategy'?: string;
}

export interface OpenApiType {
  readonly properties?: Readonly<Record<string, OpenApiField>>;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

interface GoField {
  readonly name: string;
  readonly number: string;
  readonly flags: string;
  readonly type: string;
  /** Protobuf numbers of the messages around this field, where Go embeds structs: `1.`, `1.2.`. */
  readonly within: string;
}

const PREFIXES = [
  ['k8s.io.apimachinery.pkg.apis.meta.v1.', 'meta.v1.'],
  ['k8s.io.apiextensions-apiserver.pkg.apis.', ''],
  ['k8s.io.kube-aggregator.pkg.apis.', ''],
  ['k8s.io.apimachinery.pkg.', 'machinery.'],
  ['k8s.io.api.', ''],
] as const;

function shortName(name: string): string {
  for (const [long, short] of PREFIXES) {
    if (name.startsWith(long)) return short + name.slice(long.length);
  }
  return name;
}

function parseGo(text: string): Map<string, string[]> {
  const types = new Map<string, string[]>();
  for (const line of text.trimEnd().split('\n')) {
    const [name = '', ...fields] = line.split(' ');
    types.set(name, fields);
  }
  return types;
}

function fieldsOf(types: Map<string, string[]>, name: string, within = ''): GoField[] {
  const found: GoField[] = [];
  for (const column of types.get(name) ?? []) {
    const [first = '', second = '', flags = '', type = ''] = column.split('|');
    if (first.startsWith('^'))
      found.push(...fieldsOf(types, second, `${within}${first.slice(1)}.`));
    else if (first !== '') found.push({ name: first, number: second, flags, type, within });
  }
  return found;
}

/** Names of the types that a Go type expression refers to. */
function referenced(type: string): string[] {
  const names: string[] = [];
  for (const match of type.matchAll(/k8s\.io\.[A-Za-z0-9.-]+/g)) names.push(match[0]);
  if (type.includes('!schema')) {
    names.push('k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps');
  }
  return names;
}

const GROUPS_OF_PACKAGES: Readonly<Record<string, string>> = {
  admission: 'admission.k8s.io',
  apidiscovery: 'apidiscovery.k8s.io',
  core: '',
};

/** What published documents leave out: fields whose names look like extensions. */
const UNLISTED: Readonly<Record<string, OpenApiField>> = {
  'apiextensions.v1.JSONSchemaProps.x-kubernetes-validations': {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['rule'],
    'x-kubernetes-patch-merge-key': 'rule',
    'x-kubernetes-patch-strategy': 'merge',
  },
};

const SCALARS: Readonly<Record<string, string>> = {
  string: 's',
  int: 'l',
  int32: 'i',
  int64: 'l',
  bool: 'b',
  bytes: 'y',
  uint8: 'i',
  float64: 'd',
  '!time': 'T',
  '!microTime': 'M',
  '!duration': 'D',
  '!fieldsV1': 'F',
  '!quantity': 'Q',
  '!intOrString': 'I',
  '!raw': 'R',
  '!json': 'J',
  '!schemaOrBool': 'B',
  '!schemaOrArray': 'A',
  '!schemaOrStringArray': 'P',
};

class TypeTable {
  readonly ids = new Map<string, number>();
  readonly order: string[] = [];

  idOf(name: string): number {
    let id = this.ids.get(name);
    if (id === undefined) {
      id = this.order.length;
      this.ids.set(name, id);
      this.order.push(name);
    }
    return id;
  }

  /**
   * `*` pointer, `[` list, `&` list that is a message of its own in protobuf, `{` map, `@n` a type,
   * else a scalar.
   */
  encode(type: string): string {
    if (type.startsWith('*')) return `*${this.encode(type.slice(1))}`;
    if (type.startsWith('[]')) return `[${this.encode(type.slice(2))}`;
    if (type.startsWith('&')) return this.#namedList(type);
    if (type.startsWith('map[string]')) return `{${this.encode(type.slice('map[string]'.length))}`;
    const [base = '', named] = type.split(':');
    const scalar = SCALARS[base];
    if (scalar !== undefined) return named === undefined ? scalar : `${scalar}:${named}`;
    if (base.startsWith('k8s.io.')) return `@${this.idOf(base).toString(36)}`;
    throw new Error(`no code for the Go type ${type}`);
  }

  #namedList(type: string): string {
    const [name = '', items = ''] = type.slice(1).split('=');
    const isMessage = /\.(Verbs|ExtraValue)$/.test(name);
    return (isMessage ? '&' : '[') + this.encode(items.slice(2));
  }
}

function patchColumn(field: OpenApiField | undefined): string {
  if (field === undefined) return '';
  const listType = field['x-kubernetes-list-type'] ?? '';
  const keys = (field['x-kubernetes-list-map-keys'] ?? []).join('+');
  const mergeKey = field['x-kubernetes-patch-merge-key'] ?? '';
  const strategy = (field['x-kubernetes-patch-strategy'] ?? '').replaceAll(',', '+');
  const mapType = field['x-kubernetes-map-type'] ?? '';
  return [listType, keys, mergeKey, strategy, mapType].join(',').replace(/,+$/, '');
}

/** Types by Go name that requests and answers consist of. */
function rootsOf(types: Map<string, string[]>, kinds: ReadonlySet<string>): string[] {
  const options = /\.(Pod|Node|Service)(Exec|Attach|Log|PortForward|Proxy)Options$/;
  return [...types.keys()].filter(
    (name) =>
      kinds.has(name) ||
      options.test(name) ||
      /\.meta\.v1\.(Status|WatchEvent|Table|PartialObjectMetadata(List)?|[A-Za-z]+Options)$/.test(
        name,
      ) ||
      /\.meta\.v1\.(APIGroup(List)?|APIResourceList|APIVersions)$/.test(name) ||
      /\.(admission\.v1\.AdmissionReview|apidiscovery\.v2\.APIGroupDiscoveryList)$/.test(name),
  );
}

function goNameOf(openApi: string): string {
  return `k8s.io.${openApi.slice('io.k8s.'.length)}`;
}

/** The table as text, types in the order in which they are first referred to. */
export function typeTable(goText: string, openApi: Readonly<Record<string, OpenApiType>>): string {
  const types = parseGo(goText);
  const kinds = new Map<string, string>();
  for (const [name, type] of Object.entries(openApi)) {
    const all = type['x-kubernetes-group-version-kind'];
    if (all === undefined) continue;
    const [first] = all;
    const isEverywhere = all.length > 1 || first === undefined;
    kinds.set(goNameOf(name), isEverywhere ? '*' : `${first.group}/${first.version}/${first.kind}`);
  }
  const table = new TypeTable();
  for (const root of rootsOf(types, new Set(kinds.keys())).toSorted()) table.idOf(root);
  const lines: string[] = [];
  for (let id = 0; id < table.order.length; id++) {
    const name = table.order[id] ?? '';
    const fields = fieldsOf(types, name);
    const shape = openApi[`io.k8s.${name.slice('k8s.io.'.length)}`];
    const columns = [shortName(name), kinds.get(name) ?? kindByPackage(name, fields)];
    columns.push(shape?.['x-kubernetes-map-type'] ?? '');
    for (const field of fields) {
      for (const reference of referenced(field.type)) table.idOf(reference);
      const place = `${shortName(name)}.${field.name}`;
      const property = shape?.properties?.[field.name] ?? UNLISTED[place];
      const flags = field.flags + (shape?.required?.includes(field.name) === true ? 'r' : '');
      const number = field.within + field.number;
      const column = [field.name, number, flags, table.encode(field.type), patchColumn(property)];
      columns.push(column.join('|').replace(/\|+$/, ''));
    }
    lines.push(columns.join(' '));
  }
  return lines.join('\n');
}

/** Kinds that OpenAPI does not list are recognised by having metadata or by their name. */
function kindByPackage(name: string, fields: readonly GoField[]): string {
  const [group = '', version = '', kind = ''] = shortName(name).split('.');
  const groupName = GROUPS_OF_PACKAGES[group];
  if (groupName === undefined) return '';
  const isPart = /TemplateSpec$|VolumeClaimTemplate$|^(SELinux|WindowsSecurityContext)Options$/;
  if (isPart.test(kind)) return '';
  const isKind = /(Options|Review|DiscoveryList)$/.test(kind) || fields[0]?.name === 'metadata';
  return isKind ? `${groupName}/${version}/${kind}` : '';
}
