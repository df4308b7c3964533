// shell: a thread for what is meant to take long
/**
 * Hashes of passwords in the form `$2a$10$` + 22 characters of salt + 31 of hash (bcrypt), because
 * etcd's users come with such hashes and go back with them. The cost is meant to hurt, 60 ms and
 * more, so a thread of its own does it: no other request waits. The thread starts with the first
 * password and ends when it was idle for a while.
 */
import { afterMs, guarded } from '@megaplane/base/deferred';
import bcrypt from 'bcryptjs';
import { Worker } from 'node:worker_threads';
import type { PasswordJob, PasswordOutcome } from './password-job.ts';

/** Starting it takes some 100 ms, keeping it 10 MB. */
const IDLE_MS = 30_000;
/** Of one password: a hash of cost 16 takes 4 s. What takes longer fails, and the rest goes on. */
const WORK_MS_MAX = 30_000;
export const SALT_BYTES = 16;
/** Longer passwords would be cut by the algorithm; they are refused as in Go. */
export const PASSWORD_BYTES_MAX = 72;
const FORM = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const COST_MIN = 4;
const COST_MAX = 31;

interface Waiting {
  readonly job: PasswordJob;
  readonly done: (outcome: PasswordOutcome) => void;
  readonly failed: (error: Error) => void;
}

/** Who calls bounds how many passwords wait (`PASSWORDS_UNDER_WAY_MAX`). */
export class PasswordThread {
  #worker: Worker | null = null;
  /** In the order in which the thread answers. */
  #waiting: Waiting[] = [];
  /** Ends an idle thread, or one that works for too long. */
  #timer: NodeJS.Timeout | undefined;

  /** The hash of a password of at most PASSWORD_BYTES_MAX bytes. Rejects if the thread dies. */
  async hash(password: Buffer, cost: number, salt: Buffer): Promise<string> {
    const text = `$2a$${String(cost).padStart(2, '0')}$${bcrypt.encodeBase64(salt, SALT_BYTES)}`;
    const outcome = await this.#ask({ kind: 'hash', password: password.toString(), salt: text });
    return String(outcome);
  }

  /** Does the password belong to the hash? False for a text that is no hash, too. */
  async check(password: Buffer, hash: string): Promise<boolean> {
    const cost = Number(FORM.exec(hash)?.[1] ?? NaN);
    if (!(cost >= COST_MIN && cost <= COST_MAX) || password.length > PASSWORD_BYTES_MAX) {
      return false;
    }
    return (await this.#ask({ kind: 'check', password: password.toString(), hash })) === true;
  }

  #ask(job: PasswordJob): Promise<PasswordOutcome> {
    return new Promise((done, failed) => {
      this.#waiting.push({ job, done, failed });
      if (this.#waiting.length === 1) this.#next();
    });
  }

  /** One at a time, so that the thread can be ended for what takes too long. */
  #next(): void {
    clearTimeout(this.#timer);
    const [first] = this.#waiting;
    const worker = (this.#worker ??= this.#start());
    if (first === undefined) {
      worker.unref();
      this.#timer = afterMs(IDLE_MS, () => this.#end());
      this.#timer.unref();
      return;
    }
    // whoever waits for a password keeps the process alive, an idle thread does not
    worker.ref();
    worker.postMessage(first.job);
    this.#timer = afterMs(WORK_MS_MAX, () => {
      this.#fail(new Error(`a password took more than ${WORK_MS_MAX / 1000} s`));
    });
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }

  #fail(error: Error): void {
    this.#end();
    this.#waiting.shift()?.failed(error);
    if (this.#waiting.length > 0) this.#next();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./password-worker.ts', import.meta.url));
    worker.on(
      'message',
      guarded((outcome: PasswordOutcome) => {
        if (worker !== this.#worker) return;
        this.#waiting.shift()?.done(outcome);
        this.#next();
      }),
    );
    // out of memory, for one: the next password gets another thread
    worker.on(
      'error',
      guarded((error: Error) => {
        if (worker === this.#worker) this.#fail(error);
      }),
    );
    return worker;
  }
}
