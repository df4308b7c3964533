import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoopback } from './loopback.ts';

test('addresses of the loopback are, in each of their forms', () => {
  const own = ['127.0.0.1', '127.8.9.10', '::1', '[::1]', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'];
  for (const host of [...own, 'localhost', 'LOCALHOST']) assert(isLoopback(host), host);
});

test('what begins like one is not, nor is every address', () => {
  const others = [
    '127.example.org',
    '127.0.0.1.example.org',
    '127.',
    '127.0.0.1:80',
    '',
    '::',
    '0.0.0.0',
  ];
  for (const host of [...others, '10.0.0.1', '[::2]', '::ffff:10.0.0.1', 'localhost.example.org']) {
    assert(!isLoopback(host), host);
  }
});
