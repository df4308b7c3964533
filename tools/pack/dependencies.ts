/**
 * What is inside a package beside this program: notices of licences, and a bill of materials
 * (CycloneDX 1.6). Both are made of the modules that the bundler took, so that neither names more
 * or less than there is.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ROOT } from './bundle.ts';

/** A package that is part of what is shipped. */
export interface Dependency {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The text that its licence wants to go with it; empty where it ships none. */
  readonly notice: string;
  /** SHA-512 of what the registry gave out, in hexadecimal; empty where the lock has none. */
  readonly sha512: string;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string }>>;
}

/** The packages that modules lie in, by name, each once. Throws where one has no manifest. */
export function dependenciesOf(modules: readonly string[]): readonly Dependency[] {
  const folders = new Set(modules.map(folderOf));
  const found = [...folders].map(dependencyAt);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The package in a folder below `node_modules`. */
export function dependencyAt(folder: string): Dependency {
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  const { name = basename(folder), version = '', license = '' } = JSON.parse(text) as Manifest;
  if (license === '') throw new Error(`${name}: its manifest names no licence`);
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file));
  const notice = files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n');
  return { name, version, license, notice, sha512: integrityOf(name) };
}

function folderOf(module: string): string {
  let folder = dirname(module);
  while (!existsSync(join(folder, 'package.json')) || !isNamed(folder)) {
    const above = dirname(folder);
    if (above === folder) throw new Error(`${module}: lies in no package`);
    folder = above;
  }
  return folder;
}

/** Folders within a package may have a manifest that says nothing but how modules are read. */
function isNamed(folder: string): boolean {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  return manifest.name !== undefined && manifest.version !== undefined;
}

function integrityOf(name: string): string {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const entry = Object.entries(lock.packages).find(([path]) => path === `node_modules/${name}`);
  const text = /^sha512-(.+)$/.exec(entry?.[1].integrity ?? '')?.[1] ?? '';
  return Buffer.from(text, 'base64').toString('hex');
}

/** One text with every notice. */
export function noticesText(dependencies: readonly Dependency[]): string {
  const parts = dependencies.map(({ name, version, license, notice }) => {
    const text = notice === '' ? `(it ships no text; its manifest says ${license})` : notice;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  const head = 'Megaplane is under the Apache License 2.0. It has these packages inside.\n\n';
  return head + parts.join(`\n${'-'.repeat(72)}\n\n`);
}

/** A bill of materials. The same packages make the same text. */
export function billOfMaterials(version: string, dependencies: readonly Dependency[]): string {
  const components = dependencies.map((one) => ({
    type: one.name.startsWith('node-') ? 'platform' : 'library',
    'bom-ref': purl(one.name, one.version),
    name: one.name,
    version: one.version,
    purl: purl(one.name, one.version),
    licenses: [licenseOf(one.license)],
    ...(one.sha512 === '' ? {} : { hashes: [{ alg: 'SHA-512', content: one.sha512 }] }),
  }));
  const own = purl('megaplane', version);
  const digest = createHash('sha256')
    .update(JSON.stringify([own, components]))
    .digest('hex');
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(digest)}`,
    version: 1,
    metadata: {
      component: {
        ...{ type: 'application', 'bom-ref': own, name: 'megaplane', version, purl: own },
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components,
    dependencies: [
      { ref: own, dependsOn: components.map(({ purl: ref }) => ref) },
      ...components.map(({ purl: ref }) => ({ ref, dependsOn: [] })),
    ],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function licenseOf(text: string): object {
  return /\s|\(/.test(text) ? { expression: text } : { license: { id: text } };
}

function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** A UUID of version 8 (RFC 9562, 5.8): its bits are a digest's. */
function uuidOf(hex: string): string {
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`];
  return [...parts, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-');
}
