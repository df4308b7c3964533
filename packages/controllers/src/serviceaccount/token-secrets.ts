/**
 * Secrets of type `kubernetes.io/service-account-token`: filled with a token, the CA and the
 * namespace, and deleted when their service account goes. One that goes by itself is taken out of
 * the account's list.
 *
 * Without a signing key (`--service-account-private-key-file`) the token comes from the API server
 * (TokenRequest), bound to the Secret, and ends with it.
 */
import { CONTENT } from '@megaplane/client/client';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { SignToken } from './legacy-token.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

const TYPE = 'kubernetes.io/service-account-token';
const TYPE_TEXT = Buffer.from(`"${TYPE}"`);
const ACCOUNT = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';
/** Ten years: such tokens are meant not to expire while their Secret is there. */
const EXPIRATION_SECONDS = 10 * 365 * 86_400;
const WORKERS = 5;

/** Whose token a secret has; without a uid it is whoever has the name. */
interface Account {
  readonly name: string;
  readonly uid: string;
}

export interface TokenSecretsOptions extends ControllerContext {
  readonly rootCa: string;
  /** Without it the API server is asked for the tokens. */
  readonly signToken?: SignToken | undefined;
}

export class TokenSecrets {
  readonly #options: TokenSecretsOptions;
  readonly #workers: Workers<string>;
  readonly #secrets: Informer;
  readonly #accounts: Informer;
  /** Accounts of token secrets, which are few: by namespace, as the account is in the same one. */
  readonly #known: Map<string, Map<string, Account>> = new Map();
  /** Of secrets that have gone, until their account no longer lists them. */
  readonly #gone: Map<string, Account> = new Map();

  constructor(options: TokenSecretsOptions) {
    this.#options = options;
    this.#workers = new Workers(
      options.client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      options.onError,
      options.informers.queues.queue('serviceaccount_tokens_service'),
    );
    const { informers } = options;
    this.#secrets = informers.subscribe({ path: '/api/v1/secrets' }, this.#secretHandler());
    this.#accounts = informers.subscribe(
      { path: '/api/v1/serviceaccounts' },
      {
        onUpsert: (row, isNew) => {
          if (isNew) this.#addAll(this.#accounts.keyOf(row));
        },
        onDelete: (row) => this.#addAll(this.#accounts.keyOf(row)),
      },
    );
  }

  #secretHandler(): InformerHandler {
    return {
      onUpsert: (row, _isNew, bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        if (!text.includes(TYPE_TEXT)) return;
        const key = this.#secrets.keyOf(row);
        const namespace = namespaceOf(key);
        const known = this.#known.get(namespace) ?? new Map<string, Account>();
        this.#known.set(namespace, known.set(key, accountOf(text)));
        this.#workers.add(key);
      },
      onDelete: (row) => {
        const key = this.#secrets.keyOf(row);
        const known = this.#known.get(namespaceOf(key));
        const account = known?.get(key);
        if (known === undefined || account === undefined) return;
        known.delete(key);
        if (known.size === 0) this.#known.delete(namespaceOf(key));
        if (account.name === '') return;
        this.#gone.set(key, account);
        this.#workers.add(key);
      },
    };
  }

  #addAll(account: string): void {
    for (const key of this.#known.get(namespaceOf(account))?.keys() ?? []) this.#workers.add(key);
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    const { client } = this.#options;
    const [namespace = '', name = ''] = key.split('/');
    const gone = this.#gone.get(key);
    if (gone !== undefined && !(await this.#unlist(namespace, name, gone))) return 'retry';
    this.#gone.delete(key);
    const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
    const secret = await client.request({ method: 'GET', path });
    if (!secret.ok) return secret.code === 404 ? 'done' : 'retry';
    const annotations = objectAt(secret.object, 'metadata', 'annotations');
    const accountName = stringAt(annotations, ACCOUNT);
    if (stringAt(secret.object, 'type') !== TYPE || accountName === '') return 'done';
    const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${accountName}`;
    const found = await client.request({ method: 'GET', path: account });
    if (!found.ok && found.code !== 404) return 'retry';
    const uid = found.ok ? stringAt(found.object, 'metadata', 'uid') : '';
    const wanted = stringAt(annotations, ACCOUNT_UID);
    if (!found.ok || (wanted !== '' && wanted !== uid)) return this.#delete(path, secret.object);
    return this.#fill(path, account, namespace, uid, secret.object);
  }

  /** Takes a secret that has gone out of its account; false to be tried again. */
  async #unlist(namespace: string, secret: string, { name, uid }: Account): Promise<boolean> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`;
    const found = await this.#options.client.request({ method: 'GET', path });
    if (!found.ok) return found.code === 404;
    if (uid !== '' && stringAt(found.object, 'metadata', 'uid') !== uid) return true;
    const listed = listAt(found.object, 'secrets');
    const secrets = listed.filter((one) => stringAt(one, 'name') !== secret);
    if (secrets.length === listed.length) return true;
    const body = { ...found.object, secrets };
    const written = await this.#options.client.request({ method: 'PUT', path, body });
    return written.ok || written.code === 404;
  }

  async #delete(path: string, secret: JsonObject): Promise<WorkResult> {
    const preconditions = { uid: stringAt(secret, 'metadata', 'uid') };
    const body = { preconditions };
    const gone = await this.#options.client.request({ method: 'DELETE', path, body });
    return gone.ok || gone.code === 404 || gone.code === 409 ? 'done' : 'retry';
  }

  async #fill(
    path: string,
    account: string,
    namespace: string,
    uid: string,
    secret: JsonObject,
  ): Promise<WorkResult> {
    const { client, rootCa } = this.#options;
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const data: JsonObject = {};
    if (stringAt(secret, 'data', 'token') === '') {
      const token = await this.#token(account, namespace, uid, secret);
      if (token === '') return 'retry';
      data['token'] = base64(token);
    }
    const authority = base64(rootCa);
    if (authority !== '' && stringAt(secret, 'data', 'ca.crt') !== authority) {
      data['ca.crt'] = authority;
    }
    // What somebody wrote in its place stays, as upstream.
    if (stringAt(secret, 'data', 'namespace') === '') data['namespace'] = base64(namespace);
    const isLabelled = stringAt(secret, 'metadata', 'annotations', ACCOUNT_UID) === uid;
    if (Object.keys(data).length === 0 && isLabelled) return 'done';
    const resourceVersion = stringAt(secret, 'metadata', 'resourceVersion');
    const written = await client.request({
      method: 'PATCH',
      path,
      contentType: CONTENT.mergePatch,
      body: { metadata: { resourceVersion, annotations: { [ACCOUNT_UID]: uid } }, data },
    });
    return written.ok || written.code === 404 ? 'done' : 'retry';
  }

  async #token(
    account: string,
    namespace: string,
    accountUid: string,
    secret: JsonObject,
  ): Promise<string> {
    const { signToken } = this.#options;
    if (signToken === undefined) return this.#requestToken(account, secret);
    const name = stringAt(secret, 'metadata', 'name');
    const owner = account.slice(account.lastIndexOf('/') + 1);
    return signToken({ namespace, account: owner, accountUid, secret: name });
  }

  async #requestToken(account: string, secret: JsonObject): Promise<string> {
    const boundObjectRef = {
      kind: 'Secret',
      apiVersion: 'v1',
      name: stringAt(secret, 'metadata', 'name'),
      uid: stringAt(secret, 'metadata', 'uid'),
    };
    const answer = await this.#options.client.request({
      method: 'POST',
      path: `${account}/token`,
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { audiences: [], expirationSeconds: EXPIRATION_SECONDS, boundObjectRef },
      },
    });
    return answer.ok ? stringAt(answer.object, 'status', 'token') : '';
  }
}

function accountOf(secret: Buffer): Account {
  const object = parseJson(secret.toString('utf8')) as JsonObject;
  const isToken = stringAt(object, 'type') === TYPE;
  const annotations = isToken ? objectAt(object, 'metadata', 'annotations') : undefined;
  return { name: stringAt(annotations, ACCOUNT), uid: stringAt(annotations, ACCOUNT_UID) };
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
