import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from './service.ts';

function forget(): void {
  process.removeAllListeners('SIGTERM').removeAllListeners('SIGINT');
}

test('a signal during a start that takes long ends it at once', async () => {
  const code = serve(() => new Promise(() => undefined));
  process.emit('SIGTERM');
  assert.equal(await code, 0);
  forget();
});

test('a service that was started is stopped before the end', async () => {
  const { promise: started, resolve: onStarted } = Promise.withResolvers<void>();
  let stops = 0;
  const code = serve(async () => {
    setImmediate(onStarted);
    return { listens: 'nowhere', stop: async () => void stops++ };
  });
  await started;
  process.emit('SIGINT');
  assert.equal(await code, 0);
  assert.equal(stops, 1);
  forget();
});
