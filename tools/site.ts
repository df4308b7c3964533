/** Builds the site into `dist/site`: `node tools/site.ts`. It wants `npm ci --prefix site` once. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { siteConfig, siteFiles } from './site/prepare.ts';

const SITE = join(import.meta.dirname, '../site');
const generator = join(SITE, 'node_modules/vitepress/bin/vitepress.js');

if (existsSync(generator)) {
  const source = join(SITE, '.build');
  rmSync(source, { recursive: true, force: true });
  const files = siteFiles();
  const config = `export default ${JSON.stringify(siteConfig(files))}\n`;
  for (const [path, content] of [...files, ['.vitepress/config.mjs', config] as const]) {
    mkdirSync(dirname(join(source, path)), { recursive: true });
    writeFileSync(join(source, path), content);
  }
  const built = spawnSync(process.execPath, [generator, 'build', source], { stdio: 'inherit' });
  process.exitCode = built.status ?? 1;
} else {
  process.stderr.write('site: the generator is not there; run `npm ci --prefix site` once\n');
  process.exitCode = 1;
}
