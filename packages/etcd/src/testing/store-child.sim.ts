// shell
/** For tests: a store in a process of its own, to be killed. Arguments: directory, port, mode. */
import type { Durability } from '@megaplane/store/contract';
import { runStore } from '../server/run-store.ts';

const [, , dataDir = '', port = '0', mode = 'fsync'] = process.argv;
const store = await runStore({
  storage: { dataDir, durability: mode as Durability, prefixes: [] },
  listen: [{ port: Number(port) }],
  progressNotifyMs: 100,
  onFailure: (message) => {
    process.stderr.write(`${message}\n`);
    process.exit(1);
  },
});
process.stdout.write(`ready ${store.addresses[0]?.port}\n`);
