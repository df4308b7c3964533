import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestMetrics } from './request-metrics.ts';

test('requests are told by code, method and host under the names of client-go', () => {
  const metrics = new RequestMetrics();
  metrics.answered('PUT', 200, 0.004, 70, 2_000_000);
  metrics.answered('PUT', 200, 90, 20_000_000, 10);
  metrics.answered('PUT', 0, 1, 0, 0);
  metrics.streamed(200);
  const lines = metrics.text('server:443').split('\n');
  const all = (start: string): string[] => lines.filter((line) => line.startsWith(start));
  assert.deepEqual(all('rest_client_requests_total'), [
    'rest_client_requests_total{code="200",host="server:443",method="GET"} 1',
    'rest_client_requests_total{code="<error>",host="server:443",method="PUT"} 1',
    'rest_client_requests_total{code="200",host="server:443",method="PUT"} 2',
  ]);
  const ofPuts = all('rest_client_request_duration_seconds').filter((line) => line.includes('PUT'));
  assert.deepEqual(ofPuts.slice(0, 2), [
    'rest_client_request_duration_seconds_bucket{host="server:443",verb="PUT",le="0.005"} 1',
    'rest_client_request_duration_seconds_bucket{host="server:443",verb="PUT",le="0.025"} 1',
  ]);
  assert.deepEqual(ofPuts.slice(-4), [
    'rest_client_request_duration_seconds_bucket{host="server:443",verb="PUT",le="60"} 2',
    'rest_client_request_duration_seconds_bucket{host="server:443",verb="PUT",le="+Inf"} 3',
    'rest_client_request_duration_seconds_sum{host="server:443",verb="PUT"} 91.004',
    'rest_client_request_duration_seconds_count{host="server:443",verb="PUT"} 3',
  ]);
  const sizes = all('rest_client_response_size_bytes_bucket{host="server:443",verb="PUT",le="4');
  assert.deepEqual(sizes, [
    'rest_client_response_size_bytes_bucket{host="server:443",verb="PUT",le="4096"} 2',
    'rest_client_response_size_bytes_bucket{host="server:443",verb="PUT",le="4.194304e+06"} 3',
  ]);
});
