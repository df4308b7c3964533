// shell: the bundler as a child, or files that lie beside the program
/**
 * The page's files. A package holds them beside the program, in a folder `page`; in a checkout
 * they are bundled from the sources when the server starts, by a child of this process.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface PageFile {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** Names of the files of the page; `page` answers to `/`. */
export const PAGE_FILES = ['index.html', 'page.js', 'page.css', 'icon.svg'] as const;

const CONTENT_TYPES: Readonly<Record<(typeof PAGE_FILES)[number], string>> = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};
const BUILD_MS_MAX = 60_000;
const BUILD_BYTES_MAX = 8 * 2 ** 20;

/** All files by name. Rejects with a text for people where they cannot be had. */
export async function loadPageFiles(
  folder: string = join(import.meta.dirname, 'page'),
): Promise<ReadonlyMap<string, PageFile>> {
  const texts = existsSync(folder) ? readFolder(folder) : await bundle();
  return new Map(
    PAGE_FILES.map((name) => {
      const bytes = Buffer.from(texts.get(name) ?? '');
      return [name, { contentType: CONTENT_TYPES[name], bytes }];
    }),
  );
}

function readFolder(folder: string): ReadonlyMap<string, string> {
  return new Map(PAGE_FILES.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

/** The bundler's memory is given back with its process. */
async function bundle(): Promise<ReadonlyMap<string, string>> {
  const builder = join(import.meta.dirname, '../../../dashboard/tools/build.ts');
  const options = { timeout: BUILD_MS_MAX, maxBuffer: BUILD_BYTES_MAX };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [builder], options);
    return new Map(Object.entries(parseNested(stdout) as Record<string, string>));
  } catch (error) {
    const why = (error as Error).message.split('\n').slice(0, 3).join(' ');
    throw new Error(`the page cannot be bundled (${why}); is this checkout installed?`, {
      cause: error,
    });
  }
}
