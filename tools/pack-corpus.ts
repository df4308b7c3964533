/**
 * Packs a folder of recorded answers into one file: `pack-corpus.ts folder testdata/name.json.br`.
 *
 * The file is Brotli over a JSON object from paths to texts. READMEs stay outside: how a corpus was
 * made stands in testdata/README.md. `corpus` of @megaplane/base reads it.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const [folder = '', archive = ''] = process.argv.slice(2);
if (folder === '' || archive === '') throw new Error('usage: pack-corpus.ts folder archive');
const paths = globSync('**/*', { cwd: folder, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name !== 'README.md')
  .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length))
  .toSorted();
const files = Object.fromEntries(
  paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
);
const packed = brotliCompressSync(JSON.stringify(files), {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  },
});
writeFileSync(archive, packed);
process.stdout.write(`${paths.length} files, ${packed.length} bytes\n`);
