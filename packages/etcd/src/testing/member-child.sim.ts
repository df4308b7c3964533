// shell
/** For tests: a member of a group in a process. Arguments: journal, name, port, lease,
 *  directory of copies and entries between them, if any. */
import { openJournal } from '../journal/open-journal.ts';
import { runMember } from '../member/run-member.ts';

const [, , url = '', memberName = '', port = '0', leaseMs = '1000', stateDir, every] = process.argv;
const log = (message: string): void => {
  if (process.env['MEGAPLANE_VERBOSE'] === '1') process.stderr.write(`${memberName}: ${message}\n`);
};
const fail = (message: string): void => {
  process.stderr.write(`${memberName}: ${message}\n`);
  process.exit(1);
};
const journal = await openJournal(url, {}, log);
const member = await runMember({
  storage: { dataDir: 'journal', durability: 'fsync', prefixes: [] },
  listen: [{ host: '127.0.0.1', port: Number(port) }],
  advertiseClientUrls: [`http://127.0.0.1:${port}`],
  progressNotifyMs: 100,
  onFailure: fail,
  journal,
  memberName,
  leaseMs: Number(leaseMs),
  readsByJournal: false,
  ...(stateDir === undefined ? {} : { stateDir, stateEvery: Number(every) }),
  tls: () => null,
  log,
});
process.once('SIGTERM', () => void member.close(500).then(() => process.exit(0)));
process.stdout.write(`ready ${member.addresses[0]?.port}\n`);
