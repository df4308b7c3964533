// shell: the bundler
/**
 * Bundles the page. Without arguments it writes one JSON object to stdout, file names to texts;
 * with a folder as argument it writes the files there.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '..');
const require = createRequire(import.meta.url);

async function script(): Promise<string> {
  const bundle = await rolldown({
    input: join(ROOT, 'src/main.ts'),
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'es', minify: true });
  await bundle.close();
  return output[0].code;
}

function text(name: string): string {
  return readFileSync(join(ROOT, 'static', name), 'utf8');
}

const curves = join(dirname(require.resolve('uplot')), 'uPlot.min.css');
const files = {
  'index.html': text('index.html'),
  'icon.svg': text('icon.svg'),
  'page.css': readFileSync(curves, 'utf8') + text('page.css'),
  'page.js': await script(),
};
const [folder] = process.argv.slice(2);
if (folder === undefined) process.stdout.write(JSON.stringify(files));
else {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}
