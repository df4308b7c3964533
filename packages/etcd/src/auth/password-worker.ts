/** The other side of `PasswordThread`: hashes and checks, one after the other. */
import { guarded } from '@megaplane/base/deferred';
import bcrypt from 'bcryptjs';
import { parentPort } from 'node:worker_threads';
import type { PasswordJob, PasswordOutcome } from './password-job.ts';

function done(job: PasswordJob): PasswordOutcome {
  if (job.kind === 'hash') return bcrypt.hashSync(job.password, job.salt);
  return bcrypt.compareSync(job.password, job.hash);
}

parentPort?.on(
  'message',
  guarded((job: PasswordJob) => parentPort?.postMessage(done(job))),
);
