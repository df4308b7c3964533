/** Chromium without a window, driven by its DevTools protocol. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const NO_CHROMIUM = 'needs Chromium: apt-get install chromium';
const WAIT_MS_MAX = 60_000;

/** The program; '' where there is none. */
export function chromiumProgram(): string {
  const found = spawnSync('sh', ['-c', 'command -v chromium || command -v chromium-browser']);
  return found.stdout.toString().trim();
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** One tab. */
export class Tab {
  /** What the page or the browser complained of. */
  readonly complaints: string[] = [];
  readonly #socket: WebSocket;
  readonly #waiting: Map<number, (reply: Reply) => void> = new Map();
  #id = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data)) as Reply));
  }

  async call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#id;
    const reply = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await reply;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  }

  /** Opens an address, or goes there. */
  async open(url: string): Promise<void> {
    await this.call('Page.navigate', { url });
  }

  /** The value of an expression within the page. */
  async value<Value>(expression: string): Promise<Value> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', options);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value: Value }).value;
  }

  /** Waits until an expression is true within the page; rejects with what is shown. */
  async until(expression: string): Promise<void> {
    const endMs = performance.now() + WAIT_MS_MAX;
    while (performance.now() < endMs) {
      if (await this.value<boolean>(`Boolean(${expression})`)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const shown = await this.value<string>('document.body.innerText');
    throw new Error(`never true: ${expression}; shown: ${shown.slice(0, 1500)}`);
  }

  async size(width: number, height: number): Promise<void> {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    await this.call('Emulation.setDeviceMetricsOverride', metrics);
  }

  async colours(scheme: 'light' | 'dark'): Promise<void> {
    const features = [{ name: 'prefers-color-scheme', value: scheme }];
    await this.call('Emulation.setEmulatedMedia', { features });
  }

  /** A picture of what is seen, or of the whole page. */
  async picture(file: string, isWhole = false): Promise<void> {
    const options = { format: 'png', captureBeyondViewport: isWhole };
    const { data } = await this.call('Page.captureScreenshot', options);
    writeFileSync(file, Buffer.from(String(data), 'base64'));
  }

  #take({ id, method, params, ...reply }: Reply): void {
    if (id !== undefined) {
      this.#waiting.get(id)?.(reply);
      this.#waiting.delete(id);
    }
    if (method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded') {
      this.complaints.push(JSON.stringify(params));
    }
    if (method === 'Runtime.consoleAPICalled' && params?.['type'] === 'error') {
      this.complaints.push(JSON.stringify(params['args']));
    }
  }
}

export interface Browser {
  tab(): Promise<Tab>;
  close(): Promise<void>;
}

/** Starts the browser. */
export async function startChromium(program: string): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'megaplane-chromium-'));
  const flags = [
    ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    ...['--remote-debugging-port=0', `--user-data-dir=${profile}`, '--no-first-run'],
    ...['--disable-background-networking', '--disable-component-update', '--hide-scrollbars'],
  ];
  const child: ChildProcess = spawn(program, [...flags, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const address = await new Promise<string>((resolve, reject) => {
    const lines = createInterface({ input: child.stderr! });
    lines.on('line', (line) => {
      const found = /^DevTools listening on ws:\/\/([^/]+)\//.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`Chromium ended with ${code}`)));
  });
  return {
    tab: async () => {
      const made = await fetch(`http://${address}/json/new?about:blank`, { method: 'PUT' });
      const { webSocketDebuggerUrl } = (await made.json()) as { webSocketDebuggerUrl: string };
      const socket = new WebSocket(webSocketDebuggerUrl);
      await once(socket, 'open');
      const tab = new Tab(socket);
      for (const domain of ['Page', 'Runtime', 'Log']) await tab.call(`${domain}.enable`);
      return tab;
    },
    close: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
