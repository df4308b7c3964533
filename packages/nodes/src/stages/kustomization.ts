// shell: reads directories that people name
/**
 * The files of a directory of kustomize, as far as kwok's own directories need it: `resources`,
 * which are files and such directories. What would change documents is refused by its name.
 */
import { readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { FileError, readDocuments } from '../yaml/yaml-fields.ts';

const NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'] as const;
/** Fields that say nothing about documents, and the one that lists them. */
const KNOWN = ['apiVersion', 'kind', 'metadata', 'resources'];

/**
 * The files that it lists, in their order. Throws an Error for a directory that has no such list,
 * a FileError for what it lists and that is not there, or lists what leads back to it.
 */
export function kustomizedFiles(
  directory: string,
  within: readonly string[] = [],
): readonly string[] {
  const list = NAMES.map((name) => join(directory, name)).find(isThere);
  if (list === undefined) {
    throw new Error('it is a directory without kustomization.yaml; name the files in it');
  }
  const files: string[] = [];
  for (const document of readDocuments(list, readFileSync(list, 'utf8'))) {
    const unknown = document.entries().find(([name]) => !KNOWN.includes(name));
    if (unknown !== undefined) {
      const [name, field] = unknown;
      throw field.error(`only resources are read here; give the output of kustomize for ${name}`);
    }
    for (const resource of document.inside('resources').items()) {
      const path = join(directory, resource.text());
      if (!isThere(path)) throw resource.error(`${path} is not there`);
      if (!statSync(path).isDirectory()) files.push(path);
      else if ([...within, directory].some((one) => relative(one, path) === '')) {
        throw resource.error('leads back to a directory that it is listed by');
      } else files.push(...kustomizedFiles(path, [...within, directory]));
    }
  }
  if (files.length === 0) throw new FileError(`${list}:1:1: no resources are listed`);
  return files;
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
