/** The other side of `YamlThread`: reads documents as they come, one after the other. */
import { guarded } from '@megaplane/base/deferred';
import { parentPort } from 'node:worker_threads';
import { readYaml } from './yaml-body.ts';

parentPort?.on(
  'message',
  guarded((body: Uint8Array) => {
    const { buffer, byteOffset, length } = body;
    parentPort?.postMessage(readYaml(Buffer.from(buffer, byteOffset, length)));
  }),
);
