-- One order: every order counts itself in the same row of stock, so the orders wait for each other.
BEGIN;
INSERT INTO orders (what) VALUES (repeat('x', 400));
UPDATE stock SET sold = sold + 1 WHERE id = 1;
COMMIT;
